"""Things to do, by whom they are for: tenants take turns, within a tenant its runs, and within a run all goes in order.

However much one run or one tenant asks for, the next thing of another comes after one turn of each. Pure Python.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Runs(Generic[T]):
    """What the runs of one tenant have queued."""

    order: deque[int] = field(default_factory=deque)  # whose turn is next; each run that has something, once
    queues: dict[int, deque[T]] = field(default_factory=dict)


class FairQueue(Generic[T]):
    """A queue for each run. Not thread-safe.

    Cost: constant for each thing that is added and taken, whoever else has how much queued.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._order: deque[str] = deque()  # whose turn is next; each tenant that has something, once
        self._tenants: dict[str, _Runs[T]] = {}
        self._len = 0

    def __len__(self) -> int:
        """Things queued."""
        return self._len

    def __iter__(self) -> Iterator[T]:
        """All of them, those of a run in order."""
        return (item for runs in self._tenants.values() for queue in runs.queues.values() for item in queue)

    @property
    def num_tenants(self) -> int:
        """Tenants that have something queued."""
        return len(self._order)

    def add(self, tenant: str, run_id: int, item: T) -> None:
        """Queue something behind all that the run has queued."""
        self._queue(tenant, run_id).append(item)
        self._len += 1

    def put_back(self, tenant: str, run_id: int, item: T) -> None:
        """Queue something again that has been taken and is not done: it comes first when its run's turn comes again."""
        self._queue(tenant, run_id).appendleft(item)
        self._len += 1

    def take(self) -> T:
        """Take out what comes next. The next turn of its run and of its tenant comes after those of all others.

        Raises IndexError if there is nothing.
        """
        tenant = self._order.popleft()
        runs = self._tenants[tenant]
        run_id = runs.order.popleft()
        queue = runs.queues[run_id]
        item = queue.popleft()
        self._len -= 1
        if queue:
            runs.order.append(run_id)
        else:
            del runs.queues[run_id]
        self._let_tenant_wait(tenant, runs)
        return item

    def drop(self, tenant: str, run_id: int) -> None:
        """Forget all that the run has queued. Cost: that, and the runs of its tenant that have something queued."""
        runs = self._tenants.get(tenant)
        if runs is None or run_id not in runs.queues:
            return
        self._len -= len(runs.queues.pop(run_id))
        runs.order.remove(run_id)
        if not runs.order:
            self._order.remove(tenant)
            del self._tenants[tenant]

    def _queue(self, tenant: str, run_id: int) -> deque[T]:
        """Return the run's queue, in line if it was not."""
        runs = self._tenants.get(tenant)
        if runs is None:
            runs = self._tenants[tenant] = _Runs()
            self._order.append(tenant)
        queue = runs.queues.get(run_id)
        if queue is None:
            queue = runs.queues[run_id] = deque()
            runs.order.append(run_id)
        return queue

    def _let_tenant_wait(self, tenant: str, runs: _Runs[T]) -> None:
        if runs.order:
            self._order.append(tenant)
        else:
            del self._tenants[tenant]
