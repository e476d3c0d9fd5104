"""The values in the messages between the program side and the engine."""

from __future__ import annotations

from enum import StrEnum

import msgspec


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
    DEADLOCK = "deadlock"
    PROGRAM_FAILED = "program-failed"


class FinishReason(StrEnum):
    """Why a generation ended; the names are those of `generation.finish-reason` in wit/."""

    EOS = "eos"
    STOP_TOKEN = "stop-token"
    STOP_STRING = "stop-string"
    LENGTH = "length"
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    DEADLOCK = "deadlock"


class ConstraintKind(StrEnum):
    """What the text of a constraint is; the names are those of the functions of `constraints` in wit/."""

    JSON_SCHEMA = "json-schema"
    REGEX = "regex"
    LARK = "lark"
    CHOICES = "choices"  # a JSON list of strings
    SUBSTRING = "substring"  # any run of whole words of it
    TOKENS = "tokens"  # a JSON list of token ids, any number of which may come in any order


class Combination(StrEnum):
    """How constraints are put together."""

    ALL_OF = "all-of"
    ANY_OF = "any-of"


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


class Speculation(msgspec.Struct, frozen=True):
    """How a generation guesses its next tokens, as `generation.speculation` in wit/ describes it."""

    max_draft: int = 8  # tokens guessed for one step, at most: 1 to 32
    ngram: int = 3  # tokens at the end of the context that a text must hold for a guess: 1 to 8
    expected_token_ids: tuple[int, ...] = ()  # parts of this text are expected


class Splice(msgspec.Struct, frozen=True):
    """A change of what a step appends: some tokens are dropped, then others appended, which nobody samples.

    If the step samples, `backtrack` counts the sampled token, too: 1 drops only that, 0 keeps it.
    """

    when_sampled: tuple[int, ...] = ()  # holds if one of these is sampled; empty: whatever is
    backtrack: int = 0
    token_ids: tuple[int, ...] = ()


class StepAnswer(msgspec.Struct, frozen=True):
    """What a program wants of one step of its stepped generation. Nothing of it lasts beyond that step."""

    sample: bool = True
    allow: tuple[int, ...] | None = None  # only these tokens can be sampled; None: all
    mask_id: int | None = None  # only tokens in this mask of the run
    bias: tuple[tuple[int, float], ...] = ()  # added to the logits of single tokens, besides the sampling's own
    boosts: tuple[tuple[int, float], ...] = ()  # added to the logits of all tokens of a mask of the run, by its id
    temperature: float | None = None  # instead of the sampling's
    # With sampling, the first whose condition holds counts; without, at most one, which has no condition.
    splices: tuple[Splice, ...] = ()


PLAIN_ANSWER = StepAnswer()
"""The answer that only says to go on."""


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
    draft_tokens: int = 0  # guessed by speculation
    accepted_tokens: int = 0  # of these, tokens that were generated indeed: they took no step of their own


class TokenLogprob(msgspec.Struct, frozen=True):
    """The natural logarithm of a token's probability, before temperature, after penalties, bias and constraint."""

    token_id: int
    logprob: float


class PositionLogprobs(msgspec.Struct, frozen=True):
    """Log-probabilities at one generated token: the chosen one, and the most likely ones in order."""

    chosen: TokenLogprob
    top: tuple[TokenLogprob, ...]


class SavedContext(msgspec.Struct, frozen=True):
    """What there is to know of a saved context."""

    name: str
    model: str  # that it was saved with
    num_tokens: int
    num_bytes: int  # of the tenant's quota
    expires_in_ms: int | None  # None: it is kept until it is deleted
    adapter: str | None = None  # that it was made with
