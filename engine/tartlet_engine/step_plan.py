"""What one step computes: the chunks of sequences, and who has to wait. Pure Python."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Rows
from dataclasses import dataclass, field

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_table import PageCopy
from tartlet_engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence and its lookahead that a step computes."""

    sequence: Sequence
    start: int  # slot of the first one
    num_tokens: int

    @property
    def end(self) -> int:
        """The slot after the last one computed."""
        return self.start + self.num_tokens

    @property
    def num_own(self) -> int:
        """Tokens of the sequence's own, which come before those of its lookahead."""
        if self.sequence.lookahead is None:
            return self.num_tokens  # one that is computed ahead of being known included
        return max(0, min(self.end, len(self.sequence.token_ids)) - self.start)

    @property
    def token_ids(self) -> list[int]:
        """The tokens; a zero stands for one that is computed ahead of being known, and is on the device already."""
        known_ids = self.sequence.token_ids[self.start : self.end]
        if (lookahead := self.sequence.lookahead) is not None:
            known_ids += lookahead.token_ids[self._first_ahead : self._end_ahead]
        return known_ids or [0]

    @property
    def positions(self) -> Iterable[int]:
        """Where each token stands."""
        num_own = self.num_own
        own = self.sequence.positions(self.start, self.start + num_own) if num_own else ()
        if (lookahead := self.sequence.lookahead) is None:
            return own
        return (*own, *lookahead.positions[self._first_ahead : self._end_ahead])

    @property
    def logit_slots(self) -> Rows[int]:
        """The slots of the rows whose logits are wanted, ascending.

        They are that of the sequence's last own token, after which something is sampled or kept, and those that the
        lookahead wants.
        """
        length, lookahead = len(self.sequence.token_ids), self.sequence.lookahead
        if lookahead is None:
            return (self.end - 1,) if self.end >= length else ()
        own = [length - 1] if self.start < length <= self.end else []
        return own + [length + row for row in lookahead.rows_between(self._first_ahead, self._end_ahead)]

    @property
    def _first_ahead(self) -> int:
        return max(0, self.start - len(self.sequence.token_ids))

    @property
    def _end_ahead(self) -> int:
        return max(0, self.end - len(self.sequence.token_ids))


@dataclass(slots=True)
class StepPlan:
    """What a step computes, and what could not take part."""

    num_planned: dict[Sequence, int] = field(default_factory=dict)  # tokens, of those that take part
    page_copies: list[PageCopy] = field(default_factory=list)
    moving: list[Sequence] = field(default_factory=list)  # compute nothing, but have the room that they waited for
    waiting: list[Sequence] = field(default_factory=list)  # for pages
    stuck: Sequence | None = None  # nothing takes part: this is the one that was to, and found no room either
    breaches: list[RunLimitError] = field(default_factory=list)  # at most one a run
    num_obtainable_pages: int = 0  # that it could have
    num_tokens: int = 0  # of the budget: those computed, and what evaluating lookaheads counts as
    active: list[TenantShare] = field(default_factory=list)  # tenants that want something to be computed
    backlogged: list[TenantShare] = field(default_factory=list)  # of these, those that did not get all of it

    @property
    def chunks(self) -> list[Chunk]:
        """What the step computes, of each sequence that takes part."""
        return [Chunk(sequence, sequence.num_filled, count) for sequence, count in self.num_planned.items()]

    def add(self, sequence: Sequence, num_tokens: int) -> None:
        """Let the sequence take part with so many tokens, or so many more."""
        self.num_planned[sequence] = self.num_planned.get(sequence, 0) + num_tokens
        self.num_tokens += num_tokens
