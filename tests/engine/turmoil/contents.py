"""What contexts must hold: worked out from the commands alone, without pages, steps or schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tartlet_engine.api import Splice
from tests.engine.conftest import next_token


@dataclass
class Content:
    """The tokens of a context, and the position of each."""

    token_ids: list[int]
    positions: list[int]
    adapter: str | None = None
    # What the last token saw when it was computed, where some of that was evicted since: its logits stay as they were.
    seen_by_last: list[int] | None = None

    @classmethod
    def of(cls, token_ids: Sequence[int], adapter: str | None) -> Content:
        """Return what a new context holds."""
        return cls(list(token_ids), list(range(len(token_ids))), adapter)

    @property
    def next_position(self) -> int:
        """The position of the next token."""
        return self.positions[-1] + 1 if self.positions else 0

    def gaps(self) -> list[int]:
        """Return the indices of tokens, except the first, whose position does not follow the last one's."""
        return [i for i in range(1, len(self.positions)) if self.positions[i] != self.positions[i - 1] + 1]

    def next_token(self) -> int:
        """Return what the model generates next."""
        return next_token(self.seen_by_last or self.token_ids, self.adapter)

    def continuation(self, count: int) -> list[int]:
        """Return the next tokens that the model generates."""
        longer = self.fork(len(self.token_ids))
        for _ in range(count):
            longer.append([longer.next_token()])
        return longer.token_ids[len(self.token_ids) :]

    def append(self, token_ids: Sequence[int]) -> None:
        """Add tokens, at the positions that follow."""
        if token_ids:
            first = self.next_position
            self.positions += range(first, first + len(token_ids))
            self.token_ids += token_ids
            self.seen_by_last = None

    def truncate(self, length: int) -> None:
        """Keep the first tokens."""
        if length < len(self.token_ids):
            del self.token_ids[length:], self.positions[length:]
            self.seen_by_last = None

    def evict(self, start: int, end: int) -> None:
        """Drop tokens from the middle. The others keep their positions, and the last token's logits stay."""
        if start < end:
            self.seen_by_last = self.seen_by_last or list(self.token_ids)
            del self.token_ids[start:end], self.positions[start:end]

    def fork(self, length: int) -> Content:
        """Return what a fork of the first tokens holds."""
        child = Content(list(self.token_ids), list(self.positions), self.adapter, self.seen_by_last)
        child.truncate(length)
        return child


@dataclass
class Line:
    """The provisional tokens of a forward pass: after each row comes the row that names it as its parent."""

    token_ids: list[int]
    parents: list[int]  # -1: the context

    def path(self, row: int) -> list[int]:
        """Return the rows from the context to a row, which comes last; of row -1, none."""
        rows = []
        while row != -1:
            rows.append(row)
            row = self.parents[row]
        return rows[::-1]

    def tokens(self, rows: Sequence[int]) -> list[int]:
        """Return the tokens of some rows."""
        return [self.token_ids[row] for row in rows]

    def next_token(self, content: Content, row: int) -> int:
        """Return what the model generates after a row."""
        longer = content.fork(len(content.token_ids))
        longer.append(self.tokens(self.path(row)))
        return longer.next_token()


@dataclass(frozen=True)
class StepChange:
    """What one step of a stepped generation does to its context."""

    sampled: int | None
    backtrack: int  # tokens that were there before and are dropped
    appended: tuple[int, ...]

    @classmethod
    def of(cls, content: Content, samples: bool, splice: Splice) -> StepChange:
        """Work it out from the answer."""
        sampled = content.next_token() if samples else None
        kept = () if sampled is None or splice.backtrack > 0 else (sampled,)
        return cls(sampled, max(0, splice.backtrack - samples), (*kept, *splice.token_ids))


@dataclass
class Shelf:
    """Saved contexts of all tenants, by tenant and name."""

    kept: dict[tuple[str, str], Content] = field(default_factory=dict)
    under_way: dict[int, tuple[tuple[str, str], Content]] = field(default_factory=dict)  # by operation, in order

    def save(self, operation_id: int, tenant: str, name: str, content: Content) -> None:
        """Note that a context is being saved as it is now."""
        self.under_way[operation_id] = ((tenant, name), content.fork(len(content.token_ids)))

    def done(self, operation_id: int) -> None:
        """Note that it was saved."""
        key, content = self.under_way.pop(operation_id)
        self.kept[key] = content

    def failed(self, operation_id: int) -> None:
        """Note that it was not."""
        del self.under_way[operation_id]

    def names(self, tenant: str) -> list[str]:
        """Return the names under which something is kept or being saved."""
        keys = [*self.kept, *(key for key, _ in self.under_way.values())]
        return [name for owner, name in dict.fromkeys(keys) if owner == tenant]

    def has(self, tenant: str, name: str) -> bool:
        """Tell whether something is kept under a name."""
        return (tenant, name) in self.kept

    def may_give(self, tenant: str, name: str) -> list[Content]:
        """Return what may be found under a name: what is kept, or what is being saved."""
        key = (tenant, name)
        kept = [self.kept[key]] if key in self.kept else []
        return kept + [content for other, content in self.under_way.values() if other == key]
