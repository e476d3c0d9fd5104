"""Turns of tenants at something that only a few may do at once."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tartlet.errors import UnavailableError


class Turns:
    """Places that tenants take in turn: whoever has fewest of them is next, so that nobody can keep others waiting.

    Args:
        places: How many may be at it at once.
        per_tenant: How many of them one tenant may have. With less than `places`, another finds one free at once.
        waiting_per_tenant: How many of a tenant may wait; one more is refused.
        waiting: How many of all tenants may wait; beyond that, whoever has one waiting already is refused.
    """

    def __init__(self, places: int, per_tenant: int, waiting_per_tenant: int, waiting: int) -> None:
        self._num_free = places
        self._per_tenant = per_tenant
        self._waiting_per_tenant = waiting_per_tenant
        self._most_waiting = waiting
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # who has been served last is at the end

    @property
    def num_waiting(self) -> int:
        """Who waits, of all tenants."""
        return sum(len(queue) for queue in self._waiting.values())

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it. Raises `UnavailableError` if too many of the tenant wait already."""
        await self._take(tenant)
        try:
            yield
        finally:
            self._give_back(tenant)

    async def _take(self, tenant: str) -> None:
        queue = self._waiting.setdefault(tenant, deque())
        if len(queue) >= self._waiting_per_tenant:
            raise UnavailableError(
                f"{len(queue):,} uploads of yours wait already, as many as may", hint="Wait until one is done."
            )
        if queue and self.num_waiting >= self._most_waiting:
            raise UnavailableError("too many uploads wait already, of others, too", hint="Try again in a minute.")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(place)
        self._hand_out()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back(tenant)  # it was handed out as the wait was cancelled
            else:
                self._drop(tenant, place)
            raise

    def _hand_out(self) -> None:
        while self._num_free:
            tenants = [tenant for tenant in self._waiting if self._held[tenant] < self._per_tenant]
            if not tenants:
                return
            tenant = min(tenants, key=lambda tenant: self._held[tenant])  # the first of those, which has waited longest
            queue = self._waiting.pop(tenant)
            place = queue.popleft()
            if queue:
                self._waiting[tenant] = queue
            if not place.cancelled():
                place.set_result(None)
                self._held[tenant] += 1
                self._num_free -= 1

    def _give_back(self, tenant: str) -> None:
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        self._num_free += 1
        self._hand_out()

    def _drop(self, tenant: str, place: asyncio.Future[None]) -> None:
        queue = self._waiting.get(tenant, deque())
        if place in queue:
            queue.remove(place)
        if not queue:
            self._waiting.pop(tenant, None)
