"""What a program answers before a step: the checked form of what `Steps.next` is given."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tartlet_sdk import checks, wit
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.mask import Mask, mask_id

if TYPE_CHECKING:
    from wit_world.imports import stepping as wit_stepping

NEXT = "Steps.next"


@dataclass(frozen=True, slots=True)
class Splice:
    """A change of what a step appends: `backtrack` tokens are dropped from the end, then `tokens` appended.

    In a step that samples, `backtrack` counts the sampled token, too: 0 keeps it, 1 replaces it, 2 also drops the one
    before it.
    """

    tokens: Iterable[int] = ()
    """Appended as they are; nobody samples them."""
    backtrack: int = 0
    """Tokens to drop."""
    when_sampled: Iterable[int] = ()
    """Holds if one of these is sampled; empty: whatever is sampled."""


@functools.cache
def plain_answer() -> Any:
    """The answer that only says to go on."""
    return wit.stepping.Answer(True, None, None, [], [], None, [])


def answer(
    *,
    allow: Iterable[int] | None,
    mask: Mask | None,
    bias: Mapping[int, float] | None,
    boost: Mapping[Mask, float] | None,
    temperature: float | None,
    splices: Iterable[Splice],
) -> wit_stepping.Answer:
    """The contract's record of what `Steps.next` is given. Raises `InvalidArgument`."""
    return wit.stepping.Answer(
        sample=True,
        allow=None if allow is None else checks.tokens(allow, "allow", NEXT),
        mask=mask_id(mask, NEXT),
        bias=_biases(bias),
        boosts=_boosts(boost),
        temperature=None if temperature is None else checks.number(temperature, "temperature", NEXT, 0),
        splices=_splices(splices),
    )


def _biases(bias: Mapping[int, float] | None) -> list[tuple[int, float]]:
    return [
        (checks.whole(token, "a token of bias", NEXT), checks.number(amount, f"bias[{token}]", NEXT))
        for token, amount in _items(bias, "bias", "token")
    ]


def _boosts(boost: Mapping[Mask, float] | None) -> list[tuple[int, float]]:
    pairs: list[tuple[int, float]] = []
    for mask, amount in _items(boost, "boost", "Mask"):
        number = mask_id(mask, NEXT)
        if number is None:
            raise InvalidArgument("a mask of boost is None", call=NEXT)
        pairs.append((number, checks.number(amount, "an amount of boost", NEXT)))
    return pairs


def _items(given: Any, name: str, key: str) -> Iterable[tuple[Any, Any]]:
    """The pairs of a mapping; None has none."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        message = f"{name} must be a dict of numbers by {key}, not {type(given).__name__}"
        raise InvalidArgument(message, call=NEXT)
    return given.items()


def _splices(splices: Any) -> list[wit_stepping.Splice]:
    if isinstance(splices, Splice) or not isinstance(splices, Iterable):
        hint = "Write splices=[splice]." if isinstance(splices, Splice) else ""
        raise InvalidArgument(f"splices must be several, not {type(splices).__name__}", hint=hint, call=NEXT)
    return [_splice(each) for each in splices]


def _splice(splice: Splice) -> wit_stepping.Splice:
    if not isinstance(splice, Splice):
        raise InvalidArgument(f"splices must be of Splice, not {type(splice).__name__}", call=NEXT)
    return wit.stepping.Splice(
        checks.tokens(splice.when_sampled, "when_sampled", NEXT),
        checks.whole(splice.backtrack, "backtrack", NEXT),
        checks.tokens(splice.tokens, "tokens of a splice", NEXT),
    )
