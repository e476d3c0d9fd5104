"""The ticker: epochs pass while anyone is busy."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from tartlet.wasm.ticker import EpochTicker


@dataclass(eq=False)
class Busy:
    """Someone who may have guests to run."""

    is_busy: bool = True


class Counter:
    """Counts ticks, and waits for some."""

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        """Count one."""
        self.ticks += 1

    def wait_for_more(self) -> None:
        """Wait until three more ticks have come."""
        goal = self.ticks + 3
        for _ in range(10_000):
            if self.ticks >= goal:
                return
            time.sleep(0.001)
        raise AssertionError("no ticks")


def wait_until_parked(ticker: EpochTicker) -> None:
    for _ in range(10_000):
        if ticker.is_parked:
            return
        time.sleep(0.001)
    raise AssertionError("the ticker has not parked")


def test_ticks_only_while_someone_is_busy() -> None:
    """The ticker parks when nobody is busy, and ticks again when woken."""
    counter = Counter()
    ticker = EpochTicker(counter.tick)
    one, other = Busy(), Busy(is_busy=False)
    ticker.add(one)
    ticker.add(other)
    ticker.wake()
    counter.wait_for_more()

    one.is_busy = False
    wait_until_parked(ticker)
    parked_at = counter.ticks
    time.sleep(0.02)
    assert counter.ticks == parked_at

    other.is_busy = True
    ticker.wake()
    counter.wait_for_more()

    ticker.remove(one)
    ticker.remove(other)


def test_thread_ends_with_the_last_user() -> None:
    """No thread is left when everyone has been removed, parked or not; and it starts again for the next."""
    counter = Counter()
    ticker = EpochTicker(counter.tick)
    for is_busy in (True, False, True):
        user = Busy(is_busy)
        threads = threading.active_count()
        ticker.add(user)
        if is_busy:
            ticker.wake()
            counter.wait_for_more()
        ticker.remove(user)
        assert threading.active_count() == threads
