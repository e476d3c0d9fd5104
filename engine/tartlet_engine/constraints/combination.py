"""Constraints that are put together of others: all of them hold, or any of them does.

Masks are and-ed or or-ed, token by token. So what is written is what the combination describes, but a conjunction can
come to a place from which its parts cannot go on together: then it allows nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from tartlet_engine.constraints.follower import Follower
from tartlet_engine.constraints.vocabulary import Words


class AllOf:
    """Follows several constraints at once, all of which must allow what comes."""

    def __init__(self, parts: Sequence[Follower]) -> None:
        """Follow `parts`, which must be at the same place."""
        self._parts = tuple(parts)
        self.num_parts = sum(part.num_parts for part in parts)

    @property
    def problem(self) -> str | None:
        """Why the first of the dead parts is dead."""
        return next((part.problem for part in self._parts if part.problem is not None), None)

    @property
    def may_end(self) -> bool:
        """Where all may."""
        return all(part.may_end for part in self._parts)

    @property
    def is_complete(self) -> bool:
        """Where all may end, and one lets nothing follow."""
        return self.may_end and any(part.is_complete for part in self._parts)

    def consume(self, token_ids: Sequence[int]) -> None:
        """Let all go on."""
        for part in self._parts:
            part.consume(token_ids)

    def rollback(self, num_tokens: int) -> None:
        """Let all go back."""
        for part in self._parts:
            part.rollback(num_tokens)

    def forced(self) -> list[int]:
        """Return what one part forces, as far as the others allow it."""
        longest = max((part.forced() for part in self._parts), key=len)
        return longest[: self.count_allowed(longest)] if longest else []

    def count_allowed(self, token_ids: Sequence[int]) -> int:
        """As many as every part allows."""
        return min(part.count_allowed(token_ids) for part in self._parts)

    def fill_mask(self, words: Words, *, all_spellings: bool = False) -> None:
        """Write what every part allows."""
        first, *others = self._parts
        first.fill_mask(words, all_spellings=all_spellings)
        mask = words.copy()
        for part in others:
            part.fill_mask(mask, all_spellings=all_spellings)
            words &= mask

    def copy(self) -> AllOf:
        """Copy all parts."""
        return AllOf([part.copy() for part in self._parts])


class AnyOf:
    """Follows several constraints, of which one at least must allow all that comes."""

    def __init__(self, parts: Sequence[Follower]) -> None:
        """Follow `parts`, which must be at the same place. Those that die are kept, for going back."""
        self._parts = tuple(parts)
        self.num_parts = sum(part.num_parts for part in parts)

    @property
    def _alive(self) -> list[Follower]:
        return [part for part in self._parts if part.problem is None]

    @property
    def problem(self) -> str | None:
        """Why the first part is dead, if all are."""
        return None if self._alive else self._parts[0].problem

    @property
    def may_end(self) -> bool:
        """Where one may."""
        return any(part.may_end for part in self._parts)

    @property
    def is_complete(self) -> bool:
        """Where nothing may follow in any of those that are left."""
        alive = self._alive
        return bool(alive) and all(part.is_complete for part in alive)

    def consume(self, token_ids: Sequence[int]) -> None:
        """Let all go on; some may die of it."""
        for part in self._parts:
            part.consume(token_ids)

    def rollback(self, num_tokens: int) -> None:
        """Let all go back; some may live again."""
        for part in self._parts:
            part.rollback(num_tokens)

    def forced(self) -> list[int]:
        """Return what all that are left force alike; nothing where one may end."""
        first, *others = [part.forced() for part in self._alive] or [[]]
        for forced in others:
            count = next((i for i, pair in enumerate(zip(first, forced, strict=False)) if pair[0] != pair[1]), None)
            first = first[: min(len(first), len(forced)) if count is None else count]
        return first

    def count_allowed(self, token_ids: Sequence[int]) -> int:
        """As many as one part allows."""
        return max(part.count_allowed(token_ids) for part in self._parts)

    def fill_mask(self, words: Words, *, all_spellings: bool = False) -> None:
        """Write what any part allows."""
        first, *others = self._parts
        first.fill_mask(words, all_spellings=all_spellings)
        mask = words.copy()
        for part in others:
            part.fill_mask(mask, all_spellings=all_spellings)
            words |= mask

    def copy(self) -> AnyOf:
        """Copy all parts."""
        return AnyOf([part.copy() for part in self._parts])
