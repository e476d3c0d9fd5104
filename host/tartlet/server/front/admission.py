"""Who may ask now, and whose run may start: rates, runs at once, and queues. Kept in memory, for this process.

A tenant's requests and generated tokens are counted by buckets that fill at its rate, and hold a minute's worth. Tokens
are charged while runs generate them. Whose bucket is empty can start nothing; what runs, runs to its end, and the debt
has to be worked off before the next one starts. A run takes a place, or waits for one in its tenant's queue, first in
first out. Where the server has fewer places than its tenants may fill, they take turns.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator

from tartlet.errors import QuotaError
from tartlet.server.front.limits import TenantLimits

MIN_RETRY_S, MAX_RETRY_S = 1.0, 60.0

_FIRST_GUESS_S = 5.0  # of how long a run takes, before one has ended
_SMOOTHING = 0.2


class Bucket:
    """What may be used at a rate. It fills with time up to a minute's worth, and may be overdrawn by charges."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._filled_at = clock()
        self._per_minute: float | None = None
        self.level = 0.0

    def fill(self, per_minute: int) -> None:
        """Bring the level up to now. A new rate holds from now on; a new bucket is full."""
        now = self._clock()
        if self._per_minute is None:
            self.level = float(per_minute)
        else:
            self.level += (now - self._filled_at) * self._per_minute / 60
        self._filled_at, self._per_minute = now, per_minute
        self.level = min(self.level, per_minute)

    def seconds_until(self, level: float) -> float:
        """How long it takes to be filled up to a level, from now."""
        assert self._per_minute is not None
        return max(0.0, (level - self.level) * 60 / self._per_minute)


class Place:
    """A run's place. It must be left once the run has ended, or has come to nothing."""

    def __init__(self, admission: Admission, tenant: str, now: float) -> None:
        self._admission = admission
        self.tenant = tenant
        self._since = now
        self._charged_tokens = 0
        self._is_left = False

    def charge(self, generated_tokens: int) -> None:
        """Count what the run has generated so far, in all, for the tenant's rate."""
        if not self._is_left and generated_tokens > self._charged_tokens:
            self._admission._charge(self.tenant, generated_tokens - self._charged_tokens)
            self._charged_tokens = generated_tokens

    def leave(self, generated_tokens: int | None = None) -> None:
        """Give the place up, for who waits; once more does nothing.

        Args:
            generated_tokens: By the run, which count for the tenant's rate; None: it never ran.
        """
        if not self._is_left:
            self.charge(generated_tokens or 0)
            self._is_left = True
            self._admission._left(self.tenant, self._since, has_run=generated_tokens is not None)


class _Tenant:
    """What is known of a tenant."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.limits = TenantLimits()  # as they were given last
        self.requests, self.tokens = Bucket(clock), Bucket(clock)
        self.num_live = 0
        self.queue: deque[asyncio.Future[None]] = deque()

    @property
    def has_place(self) -> bool:
        at_once = self.limits.runs_at_once
        return at_once is None or self.num_live < at_once


class Admission:
    """Lets requests and runs in. All methods are called on one event loop.

    Args:
        most_runs: Places of the server, for all tenants together; None: any number.
        clock: Seconds, which never go back.
    """

    def __init__(self, *, most_runs: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_runs = most_runs
        self._clock = clock
        self._tenants: dict[str, _Tenant] = {}  # the one whose turn was last at the end
        self._num_live = 0
        self._run_s = _FIRST_GUESS_S  # how long runs take, about

    @property
    def num_live(self) -> int:
        """Runs that have a place."""
        return self._num_live

    @property
    def num_waiting(self) -> int:
        """Runs that wait for one."""
        return sum(len(tenant.queue) for tenant in self._tenants.values())

    def admit_request(self, tenant: str, limits: TenantLimits) -> None:
        """Count a request. Raises QuotaError (`rate_limited`)."""
        per_minute = limits.requests_per_minute
        bucket = self._tenant(tenant, limits).requests
        if per_minute is None:
            return
        bucket.fill(per_minute)
        if bucket.level < 1:
            raise _rate_error("requests_per_minute", per_minute - bucket.level + 1, per_minute, bucket.seconds_until(1))
        bucket.level -= 1

    async def enter(self, tenant: str, limits: TenantLimits) -> Place:
        """Wait for a run's place. Cancelling this wait gives it up.

        Raises:
            QuotaError: The tenant has generated too many tokens lately (`rate_limited`), too many runs wait already
                (`queue_full`), or this one has waited too long (`queue_timeout`).
        """
        known = self._tenant(tenant, limits)
        _check_tokens(known)  # nobody waits for nothing
        if known.queue or not (self._has_place and known.has_place):
            await self._wait(known)  # it has been counted as live when this returns
        else:
            self._count(known)
        try:
            _check_tokens(known)  # others may have used them up meanwhile
        except QuotaError:
            self._uncount(known)
            raise
        return Place(self, tenant, self._clock())

    @property
    def _has_place(self) -> bool:
        return self._most_runs is None or self._num_live < self._most_runs

    def _tenant(self, name: str, limits: TenantLimits) -> _Tenant:
        known = self._tenants.get(name)
        if known is None:
            known = self._tenants[name] = _Tenant(self._clock)
        known.limits = limits
        return known

    async def _wait(self, tenant: _Tenant) -> None:
        limits, queue = tenant.limits, tenant.queue
        if limits.queue_length is not None and len(queue) >= limits.queue_length:
            raise self._queue_error("queue_full", "queue_length", len(queue) + 1, limits.queue_length)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        wait_ms = limits.queue_wait_ms
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn in queue:
                queue.remove(turn)
            elif not turn.cancelled():  # its turn came in the same moment
                self._uncount(tenant)
            if isinstance(error, TimeoutError) and wait_ms is not None:
                raise self._queue_error("queue_timeout", "queue_wait_ms", wait_ms, wait_ms) from error
            raise

    def _charge(self, name: str, num_tokens: int) -> None:
        tenant = self._tenants[name]
        if tenant.limits.tokens_per_minute is not None:
            tenant.tokens.fill(tenant.limits.tokens_per_minute)
            tenant.tokens.level -= num_tokens

    def _left(self, name: str, since: float, *, has_run: bool) -> None:
        if has_run:
            self._run_s += _SMOOTHING * (self._clock() - since - self._run_s)
        self._uncount(self._tenants[name])

    def _count(self, tenant: _Tenant) -> None:
        tenant.num_live += 1
        self._num_live += 1

    def _uncount(self, tenant: _Tenant) -> None:
        tenant.num_live -= 1
        self._num_live -= 1
        for waiting in self._turns():
            turn = waiting.queue.popleft()
            if not turn.done():  # otherwise its wait has just been cancelled
                turn.set_result(None)
                self._count(waiting)

    def _turns(self) -> Iterator[_Tenant]:
        """Tenants whose next run can have a place, one after the other, for as long as there are places."""
        is_over = False
        while not is_over:
            is_over = True
            for name, tenant in [*self._tenants.items()]:
                if not self._has_place:
                    return
                if tenant.queue and tenant.has_place:
                    self._tenants[name] = self._tenants.pop(name)
                    is_over = False
                    yield tenant

    def _queue_error(self, code: str, limit: str, used: int, allowed: int) -> QuotaError:
        """It may help to ask again when the next of the runs has ended, which is guessed."""
        seconds = min(MAX_RETRY_S, max(MIN_RETRY_S, self._run_s / max(1, self._num_live)))
        return QuotaError(code, limit=limit, used=used, allowed=allowed, retry_after_s=round(seconds, 3))


def _check_tokens(tenant: _Tenant) -> None:
    per_minute = tenant.limits.tokens_per_minute
    if per_minute is None:
        return
    bucket = tenant.tokens
    bucket.fill(per_minute)
    if bucket.level <= 0:
        raise _rate_error("tokens_per_minute", per_minute - bucket.level, per_minute, bucket.seconds_until(1))


def _rate_error(limit: str, used: float, allowed: int, retry_after_s: float) -> QuotaError:
    return QuotaError(
        "rate_limited", limit=limit, used=math.ceil(used), allowed=allowed, retry_after_s=round(retry_after_s, 3)
    )
