"""Who may take pages from whom, under page pressure. Pure Python.

Within a tenant, older demands may take from younger ones. Between tenants, two things count: shares of pages and turns.

Pages have fair shares, by weight, of the tenants that want something now. Whoever stays within its share may take from
whoever exceeds its own. So nothing is taken back and forth.

Where a single sequence needs more than its tenant's share, tenants take turns: a tenant has had as many turns as it has
been charged whole steps, and the oldest of one that has had fewer may take from one that has had more. As counters only
count whole turns here, who comes first does not change with every token: what has been taken is kept for a turn.

What waits holds pages to no avail. If it exceeds its share, or would with what it waits for, those may take from it
that are older or within their shares, so that as many go on as fit.
"""

from __future__ import annotations

from collections.abc import Collection

from tartlet_engine.fairness import DECODE_COST, TenantShare
from tartlet_engine.sequence import Sequence


class Claims:
    """The claims on pages in one step."""

    def __init__(self, sequences: Collection[Sequence], num_pages: int, max_batch_tokens: int) -> None:
        """Weigh the claims of all sequences with demands, over a pool of so many pages."""
        self._turn_cost = DECODE_COST * max_batch_tokens
        self._oldest: dict[TenantShare, Sequence] = {}
        for sequence in sequences:
            oldest = self._oldest.setdefault(sequence.account.share, sequence)
            if sequence.demand_order < oldest.demand_order:
                self._oldest[sequence.account.share] = sequence
        total_weight = sum(share.weight for share in self._oldest)
        self._fair_pages = {share: num_pages * share.weight / total_weight for share in self._oldest}

    def by_strength(self, sequences: Collection[Sequence]) -> list[Sequence]:
        """Order sequences: those of the tenants that have had fewest turns first, and of these the oldest."""
        return sorted(sequences, key=lambda s: (self._num_turns(s.account.share), s.demand_order))

    def by_weakness(self, sequences: Collection[Sequence]) -> list[Sequence]:
        """Order sequences from which pages can be taken.

        First come those of the tenant that holds most pages for its weight, or then is charged most, and of each tenant
        the youngest.
        """

        def weakness(sequence: Sequence) -> tuple[float, float, int]:
            share = sequence.account.share
            return share.num_pages / share.weight, share.counter, sequence.demand_order

        return sorted(sequences, key=weakness, reverse=True)

    def may_take(self, taker: Sequence, num_pages: int, giver: Sequence) -> bool:
        """Tell whether a sequence that needs so many pages may have those of another.

        Never those of one that has just come to them and has not got any further, so that every tenure brings a token.
        """
        return not giver.is_fresh and self.goes_before(taker, num_pages, giver)

    def goes_before(self, taker: Sequence, num_pages: int, giver: Sequence) -> bool:
        """Tell whether a sequence that needs so many pages may have those of another, at the latest after a token."""
        taking, giving = taker.account.share, giver.account.share
        is_older = taker.demand_order < giver.demand_order
        if taking is giving:
            return is_older
        turns_ahead = self._num_turns(taking) - self._num_turns(giving)
        if turns_ahead < 0 and taker is self._oldest[taking]:
            return True
        if self._is_within(giving, giver.num_missing_pages if giver.is_waiting else 0):
            return False
        is_within = self._is_within(taking, num_pages)
        return is_within or is_older if giver.is_waiting else is_within and turns_ahead <= 0

    def _num_turns(self, share: TenantShare) -> int:
        return int(share.counter // self._turn_cost)

    def _is_within(self, share: TenantShare, num_more: int) -> bool:
        """Tell whether a tenant does not exceed its share with so many pages more."""
        return share.num_pages + num_more <= self._fair_pages.get(share, 0.0)
