"""The store's thread: what comes of it waits for the engine's thread, and reaches whom it concerns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import Done, ErrorCode, Event, Failed
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.pages import PagePool
from tartlet_engine.store_worker import RESULTS_AT_ONCE, StoreWorker

ACCOUNT = RunAccount(1, "tenant", None, None)


@pytest.fixture
def demands() -> Demands:
    return Demands(ContextTable(PagePool(4, 4), context_len=100))


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def raising(error: BaseException) -> Callable[[], Event]:
    def work() -> Event:
        raise error

    return work


def test_a_result_waits_until_it_is_taken_up(demands: Demands, executor: ThreadPoolExecutor) -> None:
    """Work is done on the other thread, which says so; what follows is done on this one, when it asks for results."""
    worker = StoreWorker(executor, {1: ACCOUNT}, demands)
    has_result = threading.Event()
    worker.on_result = has_result.set
    threads: list[int] = []
    worker.carry_out(
        ACCOUNT, threading.get_ident, lambda future: threads.extend((future.result(), threading.get_ident()))
    )
    assert has_result.wait(60)
    assert (worker.has_results, worker.is_busy, threads) == (True, True, [])
    worker.take_up_results()

    assert (worker.has_results, worker.is_busy) == (False, False)
    assert threads[0] != threads[1] == threading.get_ident()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError(ErrorCode.NOT_FOUND, "there is none"), ErrorCode.NOT_FOUND),
        (OSError(28, "No space left on device"), ErrorCode.UNAVAILABLE),
        (ValueError("a fault of ours"), ErrorCode.INTERNAL),
    ],
)
def test_errors_become_answers(
    demands: Demands, executor: ThreadPoolExecutor, error: BaseException, code: ErrorCode
) -> None:
    """A refusal keeps its code, a disk that does not work is `unavailable`, and anything else is `internal`."""
    worker = StoreWorker(executor, {1: ACCOUNT}, demands)
    worker.find_answer(ACCOUNT, 7, raising(error))
    executor.shutdown()
    worker.take_up_results()

    (failed,) = demands.events
    assert isinstance(failed, Failed)
    assert (failed.failed_id, failed.error.code) == (7, code)


def test_a_closed_run_hears_of_nothing(demands: Demands, executor: ThreadPoolExecutor) -> None:
    """An answer for a run that is closed, even if another has its number, is dropped."""
    worker = StoreWorker(executor, {1: ACCOUNT}, demands)
    worker.find_answer(RunAccount(1, "tenant", None, None), 7, lambda: Done(7))
    worker.find_answer(ACCOUNT, 8, lambda: Done(8))
    executor.shutdown()
    worker.take_up_results()

    assert demands.events == [Done(8)]
    assert worker.account(1) is ACCOUNT
    with pytest.raises(CommandError) as caught:
        worker.account(2)
    assert caught.value.error.code is ErrorCode.NOT_FOUND


def test_tenants_take_turns(demands: Demands, executor: ThreadPoolExecutor) -> None:
    """Behind many things that one tenant has asked for, another one's come after one of them each, in order."""
    worker = StoreWorker(executor, {}, demands)
    gate, order = threading.Event(), []
    storm, calm = RunAccount(1, "storm", None, None), RunAccount(2, "calm", None, None)
    worker.carry_out(storm, gate.wait, lambda future: None)
    for account in [storm] * 30 + [calm] * 2:
        worker.carry_out(account, lambda name=account.tenant: order.append(name), lambda future: None)
    gate.set()
    executor.shutdown()

    assert [index for index, name in enumerate(order) if name == "calm"] in ([0, 2], [1, 3])
    assert len(order) == 32


def test_few_results_are_taken_up_at_once(demands: Demands, executor: ThreadPoolExecutor) -> None:
    """However many there are, the engine goes on after some of them, and takes up the others later, all once."""
    worker = StoreWorker(executor, {}, demands)
    taken: list[int] = []
    for number in range(3 * RESULTS_AT_ONCE):
        worker.carry_out(ACCOUNT, lambda number=number: number, lambda future: taken.append(future.result()))
    executor.shutdown()
    worker.take_up_results()
    assert taken == list(range(RESULTS_AT_ONCE))
    while worker.has_results:
        worker.take_up_results()

    assert taken == list(range(3 * RESULTS_AT_ONCE))
    assert not worker.is_busy
