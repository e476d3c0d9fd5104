"""Who may take pages from whom, under page pressure. Pure Python.

Within a tenant, older demands may take from younger ones. Between tenants, pages have fair shares, by weight, of the
tenants that want something now: whoever stays within its share may take from whoever exceeds its own. So nothing is
taken back and forth. Where a single sequence needs more than its tenant's share, tenants take turns instead: the oldest
of a tenant may take from one that has been charged a whole step's budget more. Where many exceed their shares and wait
for each other's pages, the older take from the younger, so that as many go on as fit.
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
        strongest = self.by_strength(self._oldest.values())
        self._strongest = strongest[0] if strongest else None
        total_weight = sum(share.weight for share in self._oldest)
        self._fair_pages = {share: num_pages * share.weight / total_weight for share in self._oldest}

    def by_strength(self, sequences: Collection[Sequence]) -> list[Sequence]:
        """Order sequences: those of the least charged tenant first, and of each tenant the oldest."""
        return sorted(sequences, key=lambda sequence: (sequence.account.share.counter, sequence.demand_order))

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

        Never those of one that has just come to them and has not got any further, nor those of the strongest of all, so
        that something always goes on.
        """
        if giver.is_fresh or giver is self._strongest:
            return False
        taking, giving = taker.account.share, giver.account.share
        if taking is giving:
            return taker.demand_order < giver.demand_order
        exceeds = giving.num_pages > self._fair_pages.get(giving, 0.0)
        if exceeds and taking.num_pages + num_pages <= self._fair_pages[taking]:
            return True
        if exceeds and giver.is_waiting and taker.demand_order < giver.demand_order:
            return True  # the giver does not go on anyway; and ages do not change, so it does not take back
        return taker is self._oldest[taking] and giving.counter - taking.counter > self._turn_cost
