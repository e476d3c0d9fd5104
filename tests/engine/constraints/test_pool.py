"""The threads that follow constraints."""

from __future__ import annotations

import threading

from tartlet_engine.constraints.pool import MaskPool


def test_what_is_urgent_comes_first() -> None:
    """Jobs of each kind are done in order, all urgent ones that wait before the next other one."""
    pool, gate, done = MaskPool(1), threading.Event(), list[str]()
    pool.submit(lambda: [None for _ in range(1) if gate.wait(60)] and None, is_urgent=False)
    for name in ("a", "b"):
        pool.submit(lambda name=name: done.append(name), is_urgent=False)  # type: ignore[misc]
        pool.submit(lambda name=name: done.append(name.upper()), is_urgent=True)  # type: ignore[misc]
    gate.set()
    pool.shutdown()

    assert done == ["A", "B", "a", "b"]


def test_a_job_that_fails_ends_no_thread() -> None:
    """The next one is done."""
    pool, is_done = MaskPool(1), threading.Event()
    pool.submit(lambda: [][0], is_urgent=True)
    pool.submit(is_done.set, is_urgent=True)

    assert is_done.wait(60)
    pool.shutdown()


def test_after_the_end_nothing_is_done() -> None:
    """Closing twice is closing once; a late job starts no thread."""
    pool, done = MaskPool(2), list[int]()
    pool.submit(lambda: done.append(1), is_urgent=True)
    pool.shutdown()
    pool.submit(lambda: done.append(2), is_urgent=True)
    pool.shutdown()

    assert done == [1]
