"""Makes room in the KV cache: whose pages are taken out, so that a sequence gets those it needs.

Cached pages go first: the pool drops them when it is asked for more than is free. Then pages of contexts that nobody
waits for, the least recently used first. Then sequences are preempted by their claims (`claims.py`): set aside with
their demands, to go on as soon as pages come free again or their turn comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping

from tartlet_engine.claims import Claims
from tartlet_engine.contexts import ContextTable
from tartlet_engine.page_table import PageTable
from tartlet_engine.pager import Pager
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.swap import is_swapped


class Preemption:
    """Makes room for the sequences of a step. On the engine's thread, while the step is planned."""

    def __init__(
        self,
        pool: PagePool,
        contexts: ContextTable,
        pager: Pager,
        max_batch_tokens: int,
        kept: Mapping[int, PageTable],
    ) -> None:
        """Make room.

        Args:
            pool: where.
            contexts: whose pages are taken out.
            pager: takes them out, and brings them back.
            max_batch_tokens: of a step.
            kept: page tables of no context, whose pages stay.
        """
        self._pool = pool
        self._contexts = contexts
        self._pager = pager
        self._max_batch_tokens = max_batch_tokens
        self._kept = kept
        self._claims: Claims | None = None
        self._refused: list[tuple[Sequence, int]] = []  # who found no room for how many pages in this step
        self._is_coming: dict[Sequence, bool] = {}  # of these: will it find room when others have got a token?
        self.num_preemptions = 0

    def begin_step(self) -> None:
        """Take note that claims are to be weighed anew."""
        self._claims = None
        self._refused.clear()
        self._is_coming.clear()

    @property
    def claims(self) -> Claims:
        """The claims in this step. Most steps need none."""
        if self._claims is None:
            self._claims = Claims(self._contexts.active.values(), self._pool.num_pages, self._max_batch_tokens)
        return self._claims

    def make_room(
        self,
        sequence: Sequence,
        num_pages: int,
        taking_part: Collection[Sequence],
        pinned: Iterable[int],
        is_last_resort: bool = False,
    ) -> bool:
        """See to it that so many pages are available, or change nothing.

        Args:
            sequence: who needs them.
            num_pages: how many.
            taking_part: sequences that the step computes.
            pinned: other pages that the step needs.
            is_last_resort: nothing else can go on, so all others have to stand back, whatever their claims.

        Returns: whether there is room.
        """
        if num_pages <= self._pool.num_available:
            return True
        if not is_last_resort and self.is_refused_at_once(sequence, num_pages):
            return False
        idle = self._idle()
        candidates = [
            other
            for other in self._contexts.active.values()
            if other is not sequence and other not in taking_part and other.page_table.page_ids
        ]
        if not is_last_resort:
            candidates = [other for other in candidates if self.claims.may_take(sequence, num_pages, other)]
        if not idle and not candidates:  # told without a look at all pages, which many that wait would take every step
            self._refused.append((sequence, num_pages))
            return False
        held = self._held_pages()
        held.update(pinned)
        missing = num_pages - self._pool.num_available
        missing -= _count_idle_pages(idle, held, missing)
        givers: list[Sequence] = []
        if missing > 0:
            if (chosen := self._choose(candidates, held, missing)) is None:
                self._refused.append((sequence, num_pages))
                return False
            givers = chosen
        for giver in givers:
            self._set_aside(giver)
        self._take_out((*idle, *givers), num_pages, held)
        return num_pages <= self._pool.num_available

    @property
    def has_refused(self) -> bool:
        """Tell whether something has found no room in this step."""
        return bool(self._refused)

    def is_refused_at_once(self, sequence: Sequence, num_pages: int) -> bool:
        """Tell whether an older one of the tenant found no room for less, which takes no look at all pages."""
        return any(
            refused.account.share is sequence.account.share
            and refused.demand_order <= sequence.demand_order
            and num_refused <= num_pages
            for refused, num_refused in self._refused
        )

    def must_stand_back(self, sequence: Sequence) -> bool:
        """Tell whether a sequence must not begin now: it goes after one that has found no room, but will soon.

        Otherwise that one would wait for as long as others come that need less.
        """
        return any(
            self.claims.goes_before(refused, num_refused, sequence) and self._will_find_room(refused, num_refused)
            for refused, num_refused in self._refused
        )

    def num_obtainable_pages(self, sequence: Sequence) -> int:
        """Return how many pages a sequence could have, if all others stood back as far as they can."""
        held = {page_id for page_table in self._kept.values() for page_id in page_table.page_ids}
        for other in self._contexts.sequences.values():
            if other is not sequence and self._must_stay(other):
                held.update(_resident(other))
        return self._pool.num_pages - len(held.difference(sequence.page_table.page_ids))

    def take_from_idle(self, num_pages: int) -> None:
        """Make so many pages available, as far as idle contexts hold some."""
        if num_pages > self._pool.num_available:
            self._take_out(self._idle(), num_pages, self._held_pages())

    def part(self, sequence: Sequence) -> bool:
        """Spare a sequence copies of shared pages, at the cost of others that do not run. Were there any?

        They are those that what it waits for replaces (`Sequence.room`), or else the one that it writes to next.
        """
        if (room := sequence.room) is None:
            return self._pager.part(sequence, sequence.num_filled // self._pool.page_size)
        return any([self._pager.part(sequence, index) for index in range(room.first, room.last)])

    def bring_back(self, sequence: Sequence, max_pages: int | None = None) -> None:
        """Bring back the pages of a sequence that were taken out, or so many of them. There must be room."""
        self._pager.bring_back(sequence, max_pages)

    def _held_pages(self) -> Counter[int]:
        """The pages of all that is not idle, or cannot go away, by how many hold them."""
        held = Counter(page_id for active in self._contexts.active.values() for page_id in active.page_table.page_ids)
        for sequence in self._contexts.holders_between_steps:
            held.update(sequence.page_table.page_ids)
        for page_table in self._kept.values():
            held.update(page_table.page_ids)
        for sequence in self._contexts.sequences.values():
            if self._must_stay(sequence):
                held.update(sequence.page_table.page_ids)
        return held

    def _must_stay(self, sequence: Sequence) -> bool:
        """Tell whether a sequence's pages can neither be computed again nor all be swapped."""
        return bool(sequence.gaps) and len(sequence.page_table.page_ids) > self._pool.swap.num_free

    def _idle(self) -> list[Sequence]:
        """The contexts that nobody waits for, the least recently used first."""
        idle = [
            sequence
            for sequence in self._contexts.sequences.values()
            if not sequence.has_demand and sequence.operation is None and sequence.page_table.page_ids
        ]
        return sorted(idle, key=lambda sequence: sequence.last_served_step)

    def _take_out(self, sequences: Iterable[Sequence], num_pages: int, held: Counter[int]) -> None:
        for sequence in sequences:
            if (missing := num_pages - self._pool.num_available) <= 0:
                break
            self._pager.take_out(sequence, missing, held)

    def _choose(self, candidates: Collection[Sequence], held: Counter[int], num_missing: int) -> list[Sequence] | None:
        """Choose who is set aside so that so many pages come free; None if not even all together are enough.

        What the chosen hold is taken out of `held`, the pages of those that go on by how many hold them.
        """
        chosen: list[Sequence] = []
        num_gained = 0
        for candidate in self.claims.by_weakness(candidates):
            if num_gained >= num_missing:
                break
            held.subtract(candidate.page_table.page_ids)
            num_gained += sum(held[page_id] == 0 for page_id in _resident(candidate))
            chosen.append(candidate)
        if num_gained < num_missing:
            return None
        for candidate in reversed(chosen):
            # Some give nothing, or more than is needed, because of what was gained from others.
            num_lost = sum(held[page_id] == 0 for page_id in _resident(candidate))
            if num_gained - num_lost >= num_missing:
                held.update(candidate.page_table.page_ids)
                num_gained -= num_lost
                chosen.remove(candidate)
        held += Counter()
        return chosen

    def _will_find_room(self, sequence: Sequence, num_pages: int) -> bool:
        """Tell whether so many pages come free, at most, when those that go after it have got a token further."""
        if sequence not in self._is_coming:
            num_soon = self._pool.num_available + sum(
                len(other.page_table.page_ids) - other.page_table.num_swapped
                for other in self._contexts.active.values()
                if other is not sequence and self.claims.goes_before(sequence, num_pages, other)
            )
            self._is_coming[sequence] = num_pages <= num_soon
        return self._is_coming[sequence]

    def _set_aside(self, sequence: Sequence) -> None:
        if not sequence.is_waiting:
            self.num_preemptions += 1
        sequence.is_waiting = True
        sequence.is_fresh = False


def _count_idle_pages(idle: Iterable[Sequence], held: Container[int], most: int) -> int:
    """Return how many pages only idle contexts hold; counting ends at `most`."""
    found: set[int] = set()
    for sequence in idle:
        if len(found) >= most:
            break
        found.update(page_id for page_id in _resident(sequence) if page_id not in held)
    return min(len(found), most)


def _resident(sequence: Sequence) -> list[int]:
    return [page_id for page_id in sequence.page_table.page_ids if not is_swapped(page_id)]
