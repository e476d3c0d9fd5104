"""What the program side asks of the engine.

Ids (runs, contexts, generations, operations) are numbers that the client chooses and never uses twice. Commands of one
run are carried out in the order submitted; between runs there is no order (`EngineClient.submit`). A command never
fails with an exception: what goes wrong comes back as a `Failed` event that names the context's, generation's or
operation's id. Like events, commands are msgspec structs, so that the same messages can cross a socket; the in-process
client hands them over as they are.
"""

from __future__ import annotations

import msgspec

from tartlet_engine.api.constraint_commands import (
    CombineConstraints,
    CompileConstraint,
    ConstraintCommand,
    ConstrainToMask,
    ForkMatcher,
    FreeConstraint,
    FreeMask,
    FreeMatcher,
    MakeMask,
    MoveMatcher,
    OpenMatcher,
)
from tartlet_engine.api.forward_messages import Forward, ForwardCommand
from tartlet_engine.api.values import Sampling, Speculation, StepAnswer, Stop


class OpenRun(msgspec.Struct, frozen=True, tag=True):
    """Begins to account for a run. Its contexts belong to it, and its limits bind all of them together."""

    run_id: int
    tenant: str = "local"  # not empty
    max_generated_tokens: int | None = None
    max_pages: int | None = None  # each shared page counts once
    weight: float = 1.0  # the tenant's share against others', in all of its runs from now on; 0.001 to 1000
    name: str = ""  # what the program side calls it; nothing depends on it here


class CloseRun(msgspec.Struct, frozen=True, tag=True):
    """Cancels and frees everything that the run holds, and drops its commands that have not been carried out.

    No event about the run follows, but `RunClosed` if that is asked for.
    """

    run_id: int
    tells_totals: bool = False


class Fence(msgspec.Struct, frozen=True, tag=True):
    """Asks how far the engine is with a run's commands, so that no more are sent than it can do.

    Answered by `Done` with the operation's id, once all of the run's commands before it have been carried out: what
    they have begun need not be done.
    """

    operation_id: int
    run_id: int


class CreateContext(msgspec.Struct, frozen=True, tag=True):
    """An empty context of the run."""

    context_id: int
    run_id: int
    adapter: str | None = None  # of `ModelInfo.adapters`: its tokens, and those of its forks, are computed with it


class AppendTokens(msgspec.Struct, frozen=True, tag=True):
    """Appends tokens, to be computed when something needs them."""

    context_id: int
    token_ids: tuple[int, ...]


class ForkContext(msgspec.Struct, frozen=True, tag=True):
    """Makes `child_id` out of the context's first `length` tokens, sharing their pages."""

    context_id: int
    child_id: int
    length: int


class TruncateContext(msgspec.Struct, frozen=True, tag=True):
    """Drops the tokens after the first `length`."""

    context_id: int
    length: int


class FlushContext(msgspec.Struct, frozen=True, tag=True):
    """Computes what was appended. Answered by `Done` or `Failed` with the operation's id."""

    context_id: int
    operation_id: int


class EvictContext(msgspec.Struct, frozen=True, tag=True):
    """Computes what was appended, then drops the tokens `start <= i < end`; the context's last token must stay.

    Later tokens do not see what was dropped; their positions go on as if it were there. Answered by `Done` or `Failed`
    with the operation's id. The context is busy until then, but for forks, which have all tokens.
    """

    context_id: int
    operation_id: int
    start: int
    end: int


class FreeContext(msgspec.Struct, frozen=True, tag=True):
    """Frees a context, and cancels a generation that runs on it without an event."""

    context_id: int


class Generate(msgspec.Struct, frozen=True, tag=True):
    """Starts a generation at the end of the context. Answered by `Chunk`s, then `Finished`, or by `Failed`.

    Stepped: it does nothing but what `AnswerStep`s say, and each is answered by `Stepped` or `StepRefused` instead.
    """

    generation_id: int
    context_id: int
    sampling: Sampling
    stop: Stop = Stop()
    num_logprobs: int | None = None
    constraint_id: int | None = None  # what it generates follows this constraint of the run, from its beginning
    mask_id: int | None = None  # all that it generates is in this mask of the run
    speculation: Speculation | None = None  # it guesses its next tokens; which ones it gets does not depend on that
    stepped: bool = False


class AnswerStep(msgspec.Struct, frozen=True, tag=True):
    """Says what the next step of a stepped generation does; one at a time. Ignored if the generation has ended."""

    generation_id: int
    answer: StepAnswer


class ForkSteps(msgspec.Struct, frozen=True, tag=True):
    """Forks the context of a stepped generation that waits for an answer, and goes on there as well.

    The child shares the logits, if they are there, and has a copy of all that the generation knows: what its penalties
    count, how far its constraint and its stop conditions are. Answered only by `Failed`, with the child's generation
    id, if that comes to nothing; then there is no child context either.
    """

    generation_id: int
    child_context_id: int
    child_generation_id: int
    seed: int | None = None  # None: the same as its parent's


class CancelGeneration(msgspec.Struct, frozen=True, tag=True):
    """Ends a generation at the next step; `Finished` follows with the reason `cancelled`. Ignored if it has ended."""

    generation_id: int


class SaveContext(msgspec.Struct, frozen=True, tag=True):
    """Computes what was appended, and keeps the context under a name of the run's tenant.

    Answered by `Done` or `Failed` with the operation's id. Of several under way under one name, the one that is done
    last stays. What is asked of the context afterwards does not concern what is saved; freeing the context does not
    either, closing the run may.
    """

    context_id: int
    operation_id: int
    name: str
    ttl_ms: int | None = None  # how long it is kept; None: until it is deleted
    overwrite: bool = False
    host_state: str = ""  # handed back as it is by `Opened`


class OpenSaved(msgspec.Struct, frozen=True, tag=True):
    """Makes a context of the run out of a saved one. Answered by `Opened` or `Failed` with the operation's id."""

    operation_id: int
    run_id: int
    context_id: int  # the new context's; busy until the answer
    name: str


class ListSaved(msgspec.Struct, frozen=True, tag=True):
    """Asks for the saved contexts of the run's tenant. Answered by `SavedList` or `Failed`."""

    operation_id: int
    run_id: int


class DeleteSaved(msgspec.Struct, frozen=True, tag=True):
    """Forgets a saved context of the run's tenant. Answered by `Done` or `Failed` with the operation's id."""

    operation_id: int
    run_id: int
    name: str


class PublishPrefix(msgspec.Struct, frozen=True, tag=True):
    """Computes the full pages of these tokens and keeps them, for every tenant to find: an operator's command.

    Answered by `Done` or `Failed` with the prefix's id.
    """

    prefix_id: int
    token_ids: tuple[int, ...]
    adapter: str | None = None  # only contexts with the same one find it


class UnpublishPrefix(msgspec.Struct, frozen=True, tag=True):
    """Lets go of a published prefix; contexts that have begun with it keep their pages. No event follows."""

    prefix_id: int


Command = (
    OpenRun
    | CloseRun
    | Fence
    | CreateContext
    | AppendTokens
    | ForkContext
    | TruncateContext
    | FlushContext
    | FreeContext
    | Generate
    | AnswerStep
    | ForkSteps
    | CancelGeneration
    | ConstraintCommand
    | ForwardCommand
    | EvictContext
    | SaveContext
    | OpenSaved
    | ListSaved
    | DeleteSaved
    | PublishPrefix
    | UnpublishPrefix
)


def failed_id(command: Command) -> int:
    """The id that a `Failed` has if the command cannot be carried out."""
    match command:
        case Generate():
            return command.generation_id
        case Fence() | FlushContext() | EvictContext() | SaveContext() | OpenSaved() | ListSaved() | DeleteSaved():
            return command.operation_id
        case Forward():
            return command.operation_id
        case ForkContext():
            return command.child_id
        case ForkSteps():
            return command.child_generation_id
        case CompileConstraint() | CombineConstraints() | ConstrainToMask() | FreeConstraint():
            return command.constraint_id
        case MakeMask() | FreeMask():
            return command.mask_id
        case OpenMatcher() | MoveMatcher() | FreeMatcher():
            return command.matcher_id
        case ForkMatcher():
            return command.child_id
        case OpenRun() | CloseRun():
            return command.run_id
        case PublishPrefix() | UnpublishPrefix():
            return command.prefix_id
        case CancelGeneration() | AnswerStep():
            return command.generation_id
        case _:
            return command.context_id
