"""The watchdog: an engine that gets nowhere says so, and does not go on for ever."""

from __future__ import annotations

import logging

import pytest

from tartlet_engine.accounts import RunAccount
from tartlet_engine.page_table import PageTable
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Flush, Link, Sequence
from tartlet_engine.watchdog import END_STEPS, WARN_STEPS, NoProgressError, Watchdog

POOL = PagePool(3, page_size=4)


def waiting_sequences() -> list[Sequence]:
    account = RunAccount(5, "local", None, None)
    first, second = (Sequence(number, account, PageTable(POOL, account), list(range(20))) for number in (1, 2))
    first.flushes, first.is_waiting = [Flush(7, 18)], True
    second.link = Link(first, 8)
    return [first, second]


def test_who_waits_for_what_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """After some steps without progress one line names who waits, for how many pages or for which context."""
    watchdog = Watchdog(POOL)
    with caplog.at_level(logging.WARNING, "tartlet_engine"):
        for _ in range(3 * WARN_STEPS):
            watchdog.note_step(False, waiting_sequences())

    (record,) = caplog.records
    message = record.getMessage()
    assert "waiting, no progress" in message
    assert "run=5 context=1 waits for pages: need=5 available=3" in message
    assert "run=5 context=2 waits for context=1" in message


def test_progress_starts_the_count_again(caplog: pytest.LogCaptureFixture) -> None:
    """Steps without progress that do not follow each other are no reason to say anything."""
    watchdog = Watchdog(POOL)
    for number in range(5 * WARN_STEPS):
        watchdog.note_step(number % (WARN_STEPS - 1) == 0, waiting_sequences())

    assert caplog.records == []


def test_it_ends() -> None:
    """After many steps without progress an error ends the waiting, and counting begins anew."""
    watchdog = Watchdog(POOL)
    for _ in range(END_STEPS - 1):
        watchdog.note_step(False, waiting_sequences())
    with pytest.raises(NoProgressError, match="context=1 waits for pages"):
        watchdog.note_step(False, waiting_sequences())
    watchdog.note_step(False, [])
