"""Fair shares between tenants: a virtual token counter each. Pure Python.

Every step charges tenants for what they really used, divided by their weight, and whoever is charged least goes first
(`scheduler.py`). A tenant that asks for nothing, or gets all it asks for, saves up nothing: its counter is lifted to
that of the tenants that have to stand back, so that it gets its share from now on and no more.

Source: virtual token counter (Sheng et al., OSDI 2024, arXiv 2401.00588), charged a step at a time, and with pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from tartlet_engine.constraints.matcher import Matcher

# What is charged for a token that is computed as part of a prompt, that is generated, and of a prompt whose keys and
# values were in the prefix cache.
PREFILL_COST = 1.0
DECODE_COST = 2.0
CACHED_COST = 0.1
# What is charged for the slot of one token in a page, for every step that it is held. A program that holds pages and
# asks for nothing takes them from others; at this price, 16,384 tokens cost as much as computing one token a step. A
# page counts once for a tenant, however many contexts share it.
SLOT_STEP_COST = 1.0 / 16384
# What is charged for a nanosecond of a processor that goes into following constraints: for a millisecond as much as
# for a token of a prompt, which takes a small model on a CPU about as long.
CONSTRAINT_COST = 1e-6

# A weight out of these bounds would push counters to where a token more is lost in rounding, those of all tenants.
MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000.0


class TenantShare:
    """What one tenant has been charged, and the distinct pages that its runs hold."""

    __slots__ = ("_page_holders", "claim", "counter", "last_served_step", "matchers", "num_runs", "tenant", "weight")

    def __init__(self, tenant: str, weight: float = 1.0) -> None:
        """Start at nothing. A tenant of weight 2 is charged half, and so gets twice as much."""
        self.tenant = tenant
        self.weight = weight
        self.counter = 0.0
        self.claim = 0.0  # what it may be charged less than others, for having stood back
        self.num_runs = 0
        self.last_served_step = -1
        self.matchers: WeakSet[Matcher] = WeakSet()  # that follow constraints for its runs
        self._page_holders: Counter[int] = Counter()  # page id -> runs of this tenant that hold it

    @property
    def num_pages(self) -> int:
        """Distinct pages held."""
        return len(self._page_holders)

    def charge(self, cost: float) -> None:
        """Charge for something that was used, at the costs above."""
        self.counter += cost / self.weight

    def hold(self, page_id: int) -> None:
        """Note that one more run of the tenant holds the page."""
        self._page_holders[page_id] += 1

    def drop(self, page_id: int) -> None:
        """Note that one run fewer of the tenant holds the page."""
        self._page_holders[page_id] -= 1
        if self._page_holders[page_id] == 0:
            del self._page_holders[page_id]

    def check_integrity(self, run_pages: Iterable[Iterable[int]]) -> None:
        """Raise AssertionError unless exactly these distinct pages of the tenant's runs account for what it holds."""
        counts = Counter(page_id for page_ids in run_pages for page_id in page_ids)
        assert counts == self._page_holders, f"tenant {self.tenant} counts {self._page_holders}, holds {counts}"


class FairShares:
    """The shares of all tenants. Not thread-safe."""

    def __init__(self, page_size: int) -> None:
        """Start without tenants, over pages of `page_size` tokens."""
        self._page_cost = page_size * SLOT_STEP_COST
        self._floor = 0.0  # where a tenant starts that had no claim
        self._backlogged: set[TenantShare] = set()
        self.tenants: dict[str, TenantShare] = {}

    def open_run(self, tenant: str, weight: float) -> TenantShare:
        """Return the share that a new run belongs to. The weight holds for all runs of the tenant from now on."""
        share = self.tenants.setdefault(tenant, TenantShare(tenant))
        share.weight = weight
        share.num_runs += 1
        return share

    def close_run(self, share: TenantShare) -> None:
        """Take note that a run has gone. What its tenant has been charged is remembered as long as it matters."""
        share.num_runs -= 1
        for other in [other for other in self.tenants.values() if other.num_runs == 0]:
            if other.counter <= self._floor:  # it would start there anyway
                del self.tenants[other.tenant]

    def begin_step(self, active: Iterable[TenantShare]) -> None:
        """Lift the tenants that ask for something, as far as they have no claim from having stood back."""
        for share in active:
            share.counter = max(share.counter, self._floor - share.claim)

    def end_step(self, active: Collection[TenantShare], backlogged: Collection[TenantShare]) -> None:
        """Charge for pages held, and take note of who had to stand back for others.

        Args:
            active: the tenants that asked for something in this step.
            backlogged: of these, those that did not get all they asked for.
        """
        for share in self.tenants.values():
            share.charge(share.num_pages * self._page_cost)
        if backlogged:
            self._floor = max(self._floor, min(share.counter for share in backlogged))
        elif active:
            # Nobody had to stand back, so nobody has a claim for what others took.
            self._floor = max(self._floor, max(share.counter for share in active))
        for share in active:
            # A claim outlasts the last step in which a tenant stood back, and is used up as it is charged: it may get
            # all it wants now, while others that are charged more wait for the pages it has.
            behind = max(0.0, self._floor - share.counter)
            stood_back = share in self._backlogged or share in backlogged
            share.claim = behind if stood_back else min(share.claim, behind)
        self._backlogged = set(backlogged)

    def check_integrity(self) -> None:
        """Raise AssertionError if a tenant has fewer than no runs, or holds pages without a run."""
        for tenant, share in self.tenants.items():
            assert share.num_runs >= 0, f"tenant {tenant} has {share.num_runs} runs"
            assert share.num_runs > 0 or share.num_pages == 0, f"tenant {tenant} has no runs, but holds pages"
