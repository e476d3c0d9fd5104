"""Going through a constraint without a generation: for sampling, scoring or splicing of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.constraint import Constraint
from tartlet_sdk.errors import InvalidArgument
from tartlet_sdk.host_call import call
from tartlet_sdk.mask import Mask

if TYPE_CHECKING:
    from wit_world.imports import constraints as wit_constraints

    from tartlet_sdk.model import Model


class Matcher:
    """A place in a constraint. Each move waits until the host knows what it comes to, beside the model's work."""

    def __init__(self, handle: wit_constraints.Matcher) -> None:
        self._handle = handle
        self._event = handle.ready()
        self._place: wit_constraints.Place | None = None

    @classmethod
    async def begin(cls, constraint: Constraint, model: Model | None = None) -> Matcher:
        """Begin at the beginning of a constraint, over the tokens of a model, by default the host's default.

        Raises:
            InvalidArgument: The constraint has an error.
            QuotaExceeded: Compiling it takes too much, or the tenant follows too many constraints.
        """
        name = "Matcher.begin"
        if not isinstance(constraint, Constraint):
            given = type(constraint).__name__
            raise InvalidArgument(f"constraint must be a Constraint, not {given}", call=name)
        handle = call(name, wit.models.Model.open, None) if model is None else model._handle
        with await constraint.compile(handle, name) as compiled:
            matcher = cls(call(name, wit.constraints.Matcher.begin, compiled))
            await matcher._arrive(name)
        return matcher

    @property
    def mask(self) -> Mask:
        """The tokens that may come next, eos tokens where it may end; of what is forced, the first token alone."""
        return Mask(call("Matcher.mask", self._handle.mask))

    @property
    def forced(self) -> list[int]:
        """Tokens that come next, whatever is sampled. `advance` by them, too."""
        return list(self._here().forced)

    @property
    def may_end(self) -> bool:
        """What it has gone through is a whole text of the constraint."""
        return self._here().may_end

    @property
    def is_complete(self) -> bool:
        """It may end, and nothing may follow."""
        return self._here().is_complete

    @property
    def problem(self) -> str | None:
        """Why nothing is allowed, for instance because of a token that was not; going back brings it back."""
        return self._here().problem

    async def advance(self, tokens: Iterable[int]) -> None:
        """Go on by tokens, allowed or not."""
        call("Matcher.advance", self._handle.advance, checks.tokens(tokens, "tokens", "Matcher.advance"))
        await self._arrive("Matcher.advance")

    async def rollback(self, count: int) -> None:
        """Go back over the last tokens."""
        call("Matcher.rollback", self._handle.rollback, checks.whole(count, "count", "Matcher.rollback"))
        await self._arrive("Matcher.rollback")

    async def fork(self) -> Matcher:
        """Make another one at the same place, which goes its own way."""
        fork = Matcher(call("Matcher.fork", self._handle.fork))
        await fork._arrive("Matcher.fork")
        return fork

    async def _arrive(self, call_name: str) -> None:
        self._place = None
        await event_loop.wait(self._event)
        self._place = call(call_name, self._handle.place)

    def _here(self) -> wit_constraints.Place:
        """Where it is. Raises `Unavailable` while a task moves it."""
        return self._place or call("Matcher", self._handle.place)
