from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from tartlet.locks import exclusive, hold_if_free
from tartlet.progress import silent

CONTEXT = multiprocessing.get_context("fork")


def hold(path: Path, is_held: object, may_end: object) -> None:
    with exclusive(path, "", silent):
        is_held.set()  # type: ignore[attr-defined]
        may_end.wait()  # type: ignore[attr-defined]


def test_a_waiter_is_told_and_goes_on_when_the_holder_is_killed(tmp_path: Path) -> None:
    """The system frees the lock of a process that dies in whatever way."""
    path = tmp_path / "lock"
    is_held, may_end = CONTEXT.Event(), CONTEXT.Event()
    process = CONTEXT.Process(target=hold, args=(path, is_held, may_end))
    process.start()
    is_held.wait()
    heard: list[tuple[str, float, float | None]] = []

    def hear(task: str, done: float, total: float | None) -> None:
        heard.append((task, done, total))
        if total is None:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)

    with exclusive(path, "Waiting", hear):
        process.join()

    assert heard == [("Waiting", 0, None), ("Waiting", 1, 1)]


def test_an_error_in_the_block_frees_the_lock(tmp_path: Path) -> None:
    """The next one does not wait."""
    path = tmp_path / "lock"
    with pytest.raises(KeyboardInterrupt), exclusive(path, "", silent):
        raise KeyboardInterrupt

    heard: list[str] = []
    with exclusive(path, "Waiting", lambda task, _done, _total: heard.append(task)):
        assert heard == []


def test_a_lock_can_be_held_for_long(tmp_path: Path) -> None:
    """Who asks meanwhile is told at once; it is free when the descriptor is closed."""
    first = hold_if_free(tmp_path / "lock")
    assert first is not None
    assert hold_if_free(tmp_path / "lock") is None
    os.close(first)
    again = hold_if_free(tmp_path / "lock")
    assert again is not None
    os.close(again)
