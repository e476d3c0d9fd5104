"""What one step computes: the chunks of sequences, and who has to wait. Pure Python."""

from __future__ import annotations

from dataclasses import dataclass, field

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_table import PageCopy
from tartlet_engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence that a step computes."""

    sequence: Sequence
    start: int
    num_tokens: int

    @property
    def end(self) -> int:
        """The position after the last one computed."""
        return self.start + self.num_tokens

    @property
    def wants_logits(self) -> bool:
        """Tell whether the chunk ends with the sequence's last token, after which something is sampled or kept."""
        return self.end >= len(self.sequence.token_ids)


@dataclass(slots=True)
class StepPlan:
    """What a step computes, and what could not take part."""

    num_planned: dict[Sequence, int] = field(default_factory=dict)  # tokens, of those that take part
    page_copies: list[PageCopy] = field(default_factory=list)
    waiting: list[Sequence] = field(default_factory=list)  # for pages
    stuck: Sequence | None = None  # nothing takes part: this is the one that was to, and found no room either
    breaches: list[RunLimitError] = field(default_factory=list)  # at most one a run
    num_obtainable_pages: int = 0  # that it could have
    num_tokens: int = 0
    active: list[TenantShare] = field(default_factory=list)  # tenants that want something to be computed
    backlogged: list[TenantShare] = field(default_factory=list)  # of these, those that did not get all of it

    @property
    def chunks(self) -> list[Chunk]:
        """What the step computes, of each sequence that takes part."""
        return [Chunk(sequence, sequence.num_computed, count) for sequence, count in self.num_planned.items()]

    def add(self, sequence: Sequence, num_tokens: int) -> None:
        """Let the sequence take part with so many tokens, or so many more."""
        self.num_planned[sequence] = self.num_planned.get(sequence, 0) + num_tokens
        self.num_tokens += num_tokens
