"""What a generation gives: chunks as they come, and the whole draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wit_world.imports import generation as wit_generation
    from wit_world.imports import steering as wit_steering


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log-probability of a token: natural logarithm, before temperature, after penalties, bias and constraint."""

    token: int
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log-probabilities at one generated token."""

    chosen: TokenLogprob
    top: tuple[TokenLogprob, ...]
    """The most likely tokens, most likely first."""

    @classmethod
    def of(
        cls, position: wit_generation.PositionLogProbabilities | wit_steering.SampledLogProbabilities
    ) -> TokenLogprobs:
        """From the contract's record."""
        chosen, *top = (TokenLogprob(each.token, each.log_probability) for each in (position.chosen, *position.top))
        return cls(chosen, tuple(top))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a generation used."""

    prompt_tokens: int
    """Tokens in the context when it began."""
    cached_tokens: int
    """Of these, tokens whose keys and values were there already: from a fork, a flush, an earlier generation, a saved
    context, or the prefix cache."""
    generated_tokens: int
    """Tokens generated, forced ones included."""
    forced_tokens: int
    """Of these, tokens that the constraint left no choice about: they were not sampled."""
    draft_tokens: int
    """Tokens guessed by speculation."""
    accepted_tokens: int
    """Of these, tokens that were generated indeed: they took no step of their own."""
    pages: int
    """Pages that the context held at the end."""
    shared_pages: int
    """Of these, pages that it shared with other contexts."""
    first_token_ns: int
    """Nanoseconds from the call to the first token."""
    total_ns: int
    """Nanoseconds from the call to the end."""

    @classmethod
    def of(cls, usage: wit_generation.Usage) -> Usage:
        """From the contract's record."""
        return cls(
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.generated_tokens,
            usage.forced_tokens,
            usage.draft_tokens,
            usage.accepted_tokens,
            usage.pages,
            usage.shared_pages,
            usage.first_token_ns,
            usage.total_ns,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a generation has produced since the chunk before."""

    text: str
    """Whole characters only; text may lag behind its tokens."""
    tokens: tuple[int, ...]
    """The tokens sampled or forced, eos tokens included."""
    logprobs: tuple[TokenLogprobs, ...] = ()
    """One for each token, if asked for."""
    sequence: int = 0
    """With a controller that forks: whose it is. 0 is the context's own; the first chunk of another begins with all
    that was generated before it forked."""
    backtrack: int = 0
    """With a controller: characters that are taken back of the sequence's text so far, before `text`."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Draft:
    """A whole generation. `str(draft)` is its text."""

    text: str
    """Without eos tokens, and without the string that stopped it."""
    tokens: tuple[int, ...]
    """The tokens sampled or forced, eos tokens included."""
    finish_reason: str
    """Why it ended: `eos`, `stop-token`, `stop-string`, `length`, `complete` (its constraint allows nothing more),
    `stopped` (by its controller), `deadlock` (the controller waited for what nobody is left to do) or `cancelled`."""
    stop_string: str | None
    """What stopped it, when that was a string."""
    usage: Usage
    logprobs: tuple[TokenLogprobs, ...] = ()
    """One for each token, if asked for."""

    value: Any = None
    """Under a constraint: what the text stands for, such as an instance of the class that `json_schema` was given, or
    the text itself. None without one, and if something else ended it before the text was whole."""

    sequences: tuple[Draft, ...] = ()
    """With a controller: this one, and those of the sequences that it has forked."""

    def __str__(self) -> str:
        return self.text
