"""When a generation stops. Conditions compose: `max_tokens(64) | stop_strings("END")` stops at whichever comes first.

The model's own eos tokens and the context length always stop a generation; `ignore_eos` lifts the former.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tartlet_sdk import checks, wit
from tartlet_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from wit_world.imports import generation as wit_generation


@dataclass(frozen=True, slots=True)
class StopCondition:
    """Reasons to stop; the first that applies does."""

    max_tokens: int | None = None
    tokens: tuple[int, ...] = ()
    strings: tuple[str, ...] = ()
    ignore_eos: bool = False

    def __or__(self, other: StopCondition) -> StopCondition:
        """Stop for any reason of either."""
        if not isinstance(other, StopCondition):
            return NotImplemented
        lengths = [n for n in (self.max_tokens, other.max_tokens) if n is not None]
        return StopCondition(
            max_tokens=min(lengths, default=None),
            tokens=tuple(dict.fromkeys(self.tokens + other.tokens)),
            strings=tuple(dict.fromkeys(self.strings + other.strings)),
            ignore_eos=self.ignore_eos or other.ignore_eos,
        )

    def and_(self, other: StopCondition) -> StopCondition:
        """Add another reason to stop; the same as `|`."""
        return self | other

    def to_wit(self) -> wit_generation.StopConditions:
        """The contract's record."""
        return wit.generation.StopConditions(
            max_tokens=self.max_tokens,
            tokens=list(self.tokens),
            strings=list(self.strings),
            ignore_eos=self.ignore_eos,
        )


def max_tokens(num_tokens: int) -> StopCondition:
    """Stop after that many generated tokens."""
    return StopCondition(max_tokens=checks.whole(num_tokens, "max_tokens", "max_tokens", 1))


def stop_strings(*strings: str) -> StopCondition:
    """Stop when the text contains any of these, even when it spans several tokens. The text ends before it."""
    for string in strings:
        if checks.text(string, "a stop string", "stop_strings") == "":
            raise InvalidArgument("a stop string must not be empty", call="stop_strings")
    return StopCondition(strings=strings)


def stop_tokens(*tokens: int) -> StopCondition:
    """Stop after any of these tokens."""
    return StopCondition(tokens=tuple(checks.tokens(tokens, "stop tokens", "stop_tokens")))


def ends_with_any(*endings: str | int | Iterable[str | int]) -> StopCondition:
    """Stop when the output ends with any of these strings or tokens, such as `model.eos_tokens`."""
    condition = StopCondition()
    for ending in endings:
        if isinstance(ending, str):
            condition |= stop_strings(ending)
        elif isinstance(ending, int):
            condition |= stop_tokens(ending)
        else:
            condition |= ends_with_any(*ending)
    return condition


def ignore_eos() -> StopCondition:
    """Go on after the model's own eos tokens."""
    return StopCondition(ignore_eos=True)
