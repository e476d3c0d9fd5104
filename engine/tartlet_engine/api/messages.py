"""The messages between the program side and the engine, and the values in them.

The program side submits commands and receives events. Both are msgspec structs, so that the same messages can cross a
socket; the in-process client hands them over as they are. Ids (runs, contexts, generations, operations) are numbers
that the client chooses and never uses twice. Commands are carried out in the order submitted. A command never fails
with an exception: what goes wrong comes back as a `Failed` event that names the context's, generation's or operation's
id.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

# ---- Values ---------------------------------------------------------------------------------------------------------


class ErrorCode(StrEnum):
    """Why a command could not be carried out; the names are those of `types.error-code` in wit/."""

    INVALID_ARGUMENT = "invalid-argument"
    NOT_FOUND = "not-found"
    ALREADY_EXISTS = "already-exists"
    PERMISSION_DENIED = "permission-denied"
    QUOTA_EXCEEDED = "quota-exceeded"
    KV_EXHAUSTED = "kv-exhausted"
    CONTEXT_OVERFLOW = "context-overflow"
    DEADLINE_EXCEEDED = "deadline-exceeded"
    CANCELLED = "cancelled"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


class FinishReason(StrEnum):
    """Why a generation ended; the names are those of `generation.finish-reason` in wit/."""

    EOS = "eos"
    STOP_TOKEN = "stop-token"
    STOP_STRING = "stop-string"
    LENGTH = "length"
    COMPLETE = "complete"
    CANCELLED = "cancelled"


class ConstraintKind(StrEnum):
    """What the text of a constraint is; the names are those of the functions of `constraints` in wit/."""

    JSON_SCHEMA = "json-schema"
    REGEX = "regex"
    LARK = "lark"
    CHOICES = "choices"  # a JSON list of strings
    SUBSTRING = "substring"  # any run of whole words of it
    TOKENS = "tokens"  # a JSON list of token ids, any number of which may come in any order


class EngineError(msgspec.Struct, frozen=True):
    """A refused or failed command: what happened, with numbers, and what to do about it (may be empty)."""

    code: ErrorCode
    message: str
    hint: str = ""


class ModelInfo(msgspec.Struct, frozen=True):
    """Facts about a loaded model."""

    name: str
    architecture: str  # as its configuration names it: LlamaForCausalLM
    context_len: int  # tokens
    vocabulary_size: int  # valid ids are 0 <= id < vocabulary_size
    page_size: int  # tokens
    num_pages: int  # of the KV pool
    eos_token_ids: tuple[int, ...]
    features: tuple[str, ...]  # "chat": it has a chat template; "evict" and "constraints" are possible
    dtype: str  # of the weights: "float32", "bfloat16", "int8", "int4"
    backend: str  # "cpu", "cuda", or "cpu (...)" with the instruction set that the fused runner's kernels use
    adapters: tuple[str, ...] = ()  # names of the LoRA adapters that contexts can be made with


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen, as `generation.sampling` in wit/ describes it. The seed is always set."""

    seed: int  # 0 <= seed < 2**64
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()


class Stop(msgspec.Struct, frozen=True):
    """When a generation ends, as `generation.stop-conditions` in wit/ describes it."""

    max_tokens: int | None = None
    token_ids: tuple[int, ...] = ()
    strings: tuple[str, ...] = ()
    ignore_eos: bool = False


class Usage(msgspec.Struct, frozen=True):
    """What a generation used."""

    prompt_tokens: int  # tokens in the context when it began
    cached_tokens: int  # of these, tokens whose keys and values were there already
    generated_tokens: int
    pages: int  # held by the context at the end
    shared_pages: int  # of these, shared with other contexts
    first_token_ns: int  # from the command's arrival to the first token; 0 if there was none
    total_ns: int
    forced_tokens: int = 0  # of the generated ones, those that the constraint left no choice about: none was sampled


class TokenLogprob(msgspec.Struct, frozen=True):
    """The natural logarithm of a token's probability, before temperature, after penalties, bias and constraint."""

    token_id: int
    logprob: float


class PositionLogprobs(msgspec.Struct, frozen=True):
    """Log-probabilities at one generated token: the chosen one, and the most likely ones in order."""

    chosen: TokenLogprob
    top: tuple[TokenLogprob, ...]


# ---- Commands -------------------------------------------------------------------------------------------------------


class OpenRun(msgspec.Struct, frozen=True, tag=True):
    """Begins to account for a run. Its contexts belong to it, and its limits bind all of them together."""

    run_id: int
    tenant: str = "local"  # not empty
    max_generated_tokens: int | None = None
    max_pages: int | None = None  # each shared page counts once
    weight: float = 1.0  # the tenant's share against others', in all of its runs from now on; 0.001 to 1000


class CloseRun(msgspec.Struct, frozen=True, tag=True):
    """Cancels and frees everything that the run holds. No event about it follows."""

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
    """Starts a generation at the end of the context. Answered by `Chunk`s, then `Finished`, or by `Failed`."""

    generation_id: int
    context_id: int
    sampling: Sampling
    stop: Stop = Stop()
    num_logprobs: int | None = None
    constraint_id: int | None = None  # what it generates follows this constraint of the run, from its beginning


class CompileConstraint(msgspec.Struct, frozen=True, tag=True):
    """Compiles a constraint for generations of the run. Answered by `Done` or `Failed` with the constraint's id."""

    constraint_id: int
    run_id: int
    kind: ConstraintKind
    text: str


class FreeConstraint(msgspec.Struct, frozen=True, tag=True):
    """Forgets a constraint of the run. Generations that follow it go on; no event follows."""

    constraint_id: int
    run_id: int


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
    | CreateContext
    | AppendTokens
    | ForkContext
    | TruncateContext
    | FlushContext
    | FreeContext
    | Generate
    | CompileConstraint
    | FreeConstraint
    | CancelGeneration
    | EvictContext
    | SaveContext
    | OpenSaved
    | ListSaved
    | DeleteSaved
    | PublishPrefix
    | UnpublishPrefix
)

# ---- Events ---------------------------------------------------------------------------------------------------------


class Chunk(msgspec.Struct, frozen=True, tag=True):
    """What one step added to a generation."""

    generation_id: int
    token_ids: tuple[int, ...]
    text: str  # whole characters only; may lag behind the tokens
    logprobs: tuple[PositionLogprobs, ...] = ()


class Finished(msgspec.Struct, frozen=True, tag=True):
    """A generation has ended; `Chunk`s before it hold its tokens and all of its text."""

    generation_id: int
    reason: FinishReason
    usage: Usage
    stop_string: str | None = None


class Done(msgspec.Struct, frozen=True, tag=True):
    """An operation has been carried out."""

    operation_id: int


class Opened(msgspec.Struct, frozen=True, tag=True):
    """A saved context is a context of the run now."""

    operation_id: int
    token_ids: tuple[int, ...]
    host_state: str
    gaps: tuple[tuple[int, int], ...] = ()  # in its positions: before the token of that index so many were evicted


class SavedContext(msgspec.Struct, frozen=True):
    """What there is to know of a saved context."""

    name: str
    model: str  # that it was saved with
    num_tokens: int
    num_bytes: int  # of the tenant's quota
    expires_in_ms: int | None  # None: it is kept until it is deleted
    adapter: str | None = None  # that it was made with


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


class EngineStopped(msgspec.Struct, frozen=True, tag=True):
    """The engine is gone; nothing that was submitted will be answered any more."""

    error: EngineError


Event = Chunk | Finished | Done | Opened | SavedList | Failed | LimitReached | EngineStopped
