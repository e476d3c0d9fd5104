"""What each run has used of the engine, against what it may use.

A page that several contexts of a run share counts once for it, and once for its tenant, whose share counts pages of the
pool only. So does the time for which a run holds pages (`PageTime`): it does not depend on who else holds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from tartlet_engine.api import PagesHeld
from tartlet_engine.fairness import TenantShare
from tartlet_engine.page_time import PageTime
from tartlet_engine.swap import is_swapped

if TYPE_CHECKING:
    from tartlet_engine.constraints.follower import Follower
    from tartlet_engine.constraints.vocabulary import Words
    from tartlet_engine.drafter import Drafter

GENERATED_TOKENS = "generated_tokens"
KV_PAGES = "kv_pages"


class RunLimitError(Exception):
    """A run cannot go on: `used` is what it would have used by going on, more than `allowed`."""

    def __init__(self, account: RunAccount, limit: str, used: int, allowed: int) -> None:
        super().__init__(f"run {account.run_id}: {limit} allows {allowed:,}, going on needs {used:,}")
        self.account = account
        self.limit = limit
        self.used = used
        self.allowed = allowed


class RunAccount:
    """The tokens that one run has generated and the distinct pages that its contexts hold."""

    def __init__(
        self,
        run_id: int,
        tenant: str,
        max_generated_tokens: int | None,
        max_pages: int | None,
        share: TenantShare | None = None,
        changed: dict[RunAccount, None] | None = None,
    ) -> None:
        """Open an account.

        Args:
            run_id: the run's number.
            tenant: on whose behalf it runs.
            max_generated_tokens: of all its generations together; None: no limit.
            max_pages: distinct pages held at once; None: no limit.
            share: its tenant's; without one, the run has one to itself.
            changed: where it puts itself when the number of its pages in the pool changes.
        """
        self.run_id = run_id
        self.tenant = tenant
        self.share = TenantShare(tenant) if share is None else share
        self.max_generated_tokens = max_generated_tokens
        self.max_pages = max_pages
        self.num_prompt_tokens = 0  # in its contexts when generations began, summed over these
        self.num_generated_tokens = 0
        self.page_time = PageTime()  # of pages in the pool
        self.is_stopped = False  # it has reached a limit; nothing more is computed for it
        self.is_closing = False  # it is being closed, which takes a while; nobody hears of it any more
        self.last_prefill_step = -1  # for the scheduler's turn-taking between runs
        self.constraints: dict[int, Follower] = {}  # compiled, by id: prototypes that nobody changes
        self.masks: dict[int, Words] = {}  # by id: nobody writes to them
        self.drafters: WeakSet[Drafter] = WeakSet()  # of its generations that guess their next tokens
        self.num_passing_pages = 0  # held for a moment, while what replaces others is copied into them
        self._changed: dict[RunAccount, None] = {} if changed is None else changed
        self._page_holders: Counter[int] = Counter()  # page id -> page tables of this run that hold it

    @property
    def num_pages(self) -> int:
        """Distinct pages held, swapped ones included: what a run may hold does not depend on what others do."""
        return len(self._page_holders) - self.num_passing_pages

    def hold(self, page_ids: Iterable[int]) -> None:
        """Note that one more page table of the run holds each of these pages."""
        num_gained = 0
        for page_id in page_ids:
            if page_id not in self._page_holders and not is_swapped(page_id):
                self.share.hold(page_id)
                num_gained += 1
            self._page_holders[page_id] += 1
        self._count_pages(num_gained)

    def drop(self, page_ids: Iterable[int]) -> None:
        """Note that one page table fewer of the run holds each of these pages."""
        num_lost = 0
        for page_id in page_ids:
            self._page_holders[page_id] -= 1
            if self._page_holders[page_id] == 0:
                del self._page_holders[page_id]
                if not is_swapped(page_id):
                    self.share.drop(page_id)
                    num_lost += 1
        self._count_pages(-num_lost)

    def pages_held(self) -> PagesHeld:
        """What there is to tell of its pages."""
        page_time = self.page_time
        return PagesHeld(self.run_id, page_time.num_pages, page_time.total_ns, page_time.since_ns)

    @property
    def pool_page_ids(self) -> Iterable[int]:
        """The distinct pages of the pool that are held."""
        return (page_id for page_id in self._page_holders if not is_swapped(page_id))

    def require_pages(self, num_new_pages: int) -> None:
        """Raise RunLimitError if this many pages more would be too many."""
        needed = self.num_pages + num_new_pages
        if self.max_pages is not None and num_new_pages > 0 and needed > self.max_pages:
            raise RunLimitError(self, KV_PAGES, needed, self.max_pages)

    def require_exchange(self, held: Iterable[int], dropped: Iterable[int]) -> None:
        """Raise RunLimitError if it would be too many pages that a page table held `held` instead of `dropped`."""
        num_gained = sum(page_id not in self._page_holders for page_id in held)
        self.require_pages(num_gained - self.num_held_once(dropped))

    def num_held_once(self, page_ids: Iterable[int]) -> int:
        """Return how many of these pages only one page table of the run holds."""
        return sum(self._page_holders[page_id] == 1 for page_id in page_ids)

    def require_token(self) -> None:
        """Raise RunLimitError if one token more would be too many."""
        needed = self.num_generated_tokens + 1
        if self.max_generated_tokens is not None and needed > self.max_generated_tokens:
            raise RunLimitError(self, GENERATED_TOKENS, needed, self.max_generated_tokens)

    def check_integrity(self, page_tables: Iterable[Iterable[int]]) -> None:
        """Raise AssertionError unless exactly these page tables of the run account for what it holds."""
        counts = Counter(page_id for page_table in page_tables for page_id in page_table)
        assert counts == self._page_holders, f"run {self.run_id} counts {self._page_holders}, holds {counts}"
        num_pages = sum(1 for _ in self.pool_page_ids)
        assert num_pages == self.page_time.num_pages, f"run {self.run_id} counts the time of {self.page_time.num_pages}"

    def _count_pages(self, num_pages: int) -> None:
        if num_pages:
            self.page_time.add(num_pages)
            self._changed[self] = None
