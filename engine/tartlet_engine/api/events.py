"""What the engine says to the program side."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from tartlet_engine.api.forward_messages import Forwarded
from tartlet_engine.api.values import EngineError, FinishReason, PositionLogprobs, SavedContext, Usage


class Chunk(msgspec.Struct, frozen=True, tag=True):
    """What one step added to a generation."""

    generation_id: int
    token_ids: tuple[int, ...]
    text: str  # whole characters only; may lag behind the tokens
    logprobs: tuple[PositionLogprobs, ...] = ()


class Stepped(msgspec.Struct, frozen=True, tag=True):
    """A step of a stepped generation is done. The next `AnswerStep` may come; its forward pass begins without it."""

    generation_id: int
    token_ids: tuple[int, ...]  # appended
    text: str  # that they add: whole characters only, and nothing that may become a stop string
    sampled: int | None = None  # even if it was replaced
    backtrack: int = 0  # tokens that were dropped, before the appended ones: of those that were there before the step
    text_backtrack: int = 0  # characters (code points) of the text so far that are taken back, before `text`
    logprobs: PositionLogprobs | None = None  # where it sampled, if they were asked for
    finish_reason: FinishReason | None = None  # it was the last step: `Finished` follows


class StepRefused(msgspec.Struct, frozen=True, tag=True):
    """An `AnswerStep` could not be carried out, and has changed nothing. The generation waits for another one."""

    generation_id: int
    error: EngineError


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A generation has ended; `Chunk`s before it hold its tokens and all of its text."""

    generation_id: int
    reason: FinishReason
    usage: Usage
    stop_string: str | None = None


class Done(msgspec.Struct, frozen=True, tag=True):
    """An operation has been carried out."""

    operation_id: int


class MatcherMoved(msgspec.Struct, frozen=True, tag=True):
    """Where a matcher is: at the end of what the program has moved it by."""

    matcher_id: int
    num_moves: int  # that it has made since it was opened or forked
    mask: bytes  # what may come next, as the words of `MakeMask`
    forced: tuple[int, ...]  # tokens that come next whatever is sampled
    may_end: bool
    is_complete: bool  # and nothing may follow
    problem: str | None = None  # why nothing is allowed


class Opened(msgspec.Struct, frozen=True, tag=True):
    """A saved context is a context of the run now."""

    operation_id: int
    token_ids: tuple[int, ...]
    host_state: str
    gaps: tuple[tuple[int, int], ...] = ()  # in its positions: before the token of that index so many were evicted


class SavedList(msgspec.Struct, frozen=True, tag=True):
    """The saved contexts of a tenant, by name."""

    operation_id: int
    contexts: tuple[SavedContext, ...]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The command with this generation, operation or context id could not be carried out; all that it held is freed."""

    failed_id: int
    error: EngineError


class LimitReached(msgspec.Struct, frozen=True, tag=True):
    """A run has reached one of its limits. The engine has stopped all of its generations; `CloseRun` is due."""

    run_id: int
    limit: str  # "generated_tokens" or "kv_pages"
    used: int
    allowed: int


class PagesHeld(msgspec.Struct, frozen=True, tag=True):
    """A run holds another number of pages than before. Told with the other events of a step, or when the engine rests.

    Pages of the pool, not swapped ones; each once, whoever else holds it.
    """

    run_id: int
    num_pages: int
    page_ns: int  # pages times nanoseconds, of the run so far
    at_ns: int  # until then, of `time.monotonic_ns`


class RunClosed(msgspec.Struct, frozen=True, tag=True):
    """What a run has used that has been closed by `CloseRun` with `tells_totals`."""

    run_id: int
    prompt_tokens: int  # tokens in its contexts when generations began, summed over the generations
    generated_tokens: int
    page_ns: int  # pages times nanoseconds


class EngineStopped(msgspec.Struct, frozen=True, tag=True):
    """The engine is gone; nothing that was submitted will be answered any more."""

    error: EngineError


Event = (
    Chunk
    | Stepped
    | StepRefused
    | Finished
    | Done
    | Forwarded
    | MatcherMoved
    | Opened
    | SavedList
    | Failed
    | LimitReached
    | PagesHeld
    | RunClosed
    | EngineStopped
)

TARGET_IDS: dict[type, Callable[[Any], int]] = {
    Chunk: attrgetter("generation_id"),
    Stepped: attrgetter("generation_id"),
    StepRefused: attrgetter("generation_id"),
    Finished: attrgetter("generation_id"),
    Forwarded: attrgetter("operation_id"),
    Done: attrgetter("operation_id"),
    MatcherMoved: attrgetter("matcher_id"),
    Opened: attrgetter("operation_id"),
    SavedList: attrgetter("operation_id"),
    Failed: attrgetter("failed_id"),
    LimitReached: attrgetter("run_id"),
    PagesHeld: attrgetter("run_id"),
    RunClosed: attrgetter("run_id"),
}
"""The id of whom an event concerns, by its type. `EngineStopped` concerns everybody."""
