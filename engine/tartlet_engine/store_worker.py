"""Lets the store of saved contexts work on a thread of its own, and brings what comes of it back to the engine's.

Tenants take turns there, and their runs (`fair_queue.py`): whoever asks for hundreds of things holds up its own.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import EngineError, ErrorCode, Event, Failed
from tartlet_engine.command_error import CommandError
from tartlet_engine.demands import Demands
from tartlet_engine.fair_queue import FairQueue

RESULTS_AT_ONCE = 8
"""Results that are taken up between two steps: taking one up makes events and lists of tokens."""

_log = logging.getLogger("tartlet_engine")


class _Work(NamedTuple):
    """Something for the worker's thread, and what follows on the engine's."""

    work: Callable[[], Any]
    take_up: Callable[[Future[Any]], None]


class StoreWorker:
    """What the worker's thread has been asked for. All but `on_result` is for the engine's thread."""

    def __init__(self, executor: Executor, accounts: Mapping[int, RunAccount], demands: Demands) -> None:
        """Let `executor` carry out one thing after the other, and tell the runs of `accounts` through `demands`."""
        self._executor = executor
        self._accounts = accounts
        self._demands = demands
        self._num_under_way = 0
        self._lock = threading.Lock()  # guards the queue
        self._queue: FairQueue[_Work] = FairQueue()
        self._results: deque[Callable[[], None]] = deque()  # filled on the worker's thread
        self.on_result: Callable[[], None] = lambda: None  # called on the worker's thread when there is a result

    @property
    def has_results(self) -> bool:
        """Tell whether `take_up_results` would do something."""
        return bool(self._results)

    @property
    def is_busy(self) -> bool:
        """Tell whether something has been asked for whose result has not been taken up."""
        return self._num_under_way > 0

    def account(self, run_id: int) -> RunAccount:
        """Return the account of an open run. Raises CommandError `not-found`."""
        account = self._accounts.get(run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {run_id}")
        return account

    def carry_out(self, account: RunAccount, work: Callable[[], Any], take_up: Callable[[Future[Any]], None]) -> None:
        """Carry out `work` for a run on the worker's thread, then `take_up` on this one, with its result."""
        self._num_under_way += 1
        with self._lock:
            self._queue.add(account.tenant, account.run_id, _Work(work, take_up))
        self._executor.submit(self._carry_out_next)

    def find_answer(self, account: RunAccount, operation_id: int, work: Callable[[], Event]) -> None:
        """Answer an operation with what `work` returns on the worker's thread, or with `Failed` if it raises."""

        def take_up(future: Future[Event]) -> None:
            error = future.exception()
            self.answer(account, future.result() if error is None else Failed(operation_id, engine_error(error)))

        self.carry_out(account, work, take_up)

    def take_up_results(self) -> None:
        """Take up what the worker has done, or some of it."""
        for _ in range(min(RESULTS_AT_ONCE, len(self._results))):
            self._num_under_way -= 1
            self._results.popleft()()

    def answer(self, account: RunAccount, event: Event) -> None:
        """Tell the run, unless it is closed."""
        if self._accounts.get(account.run_id) is account and not account.is_closing:
            self._demands.events.append(event)

    def _carry_out_next(self) -> None:
        """Carry out whatever comes next. On the worker's thread, once for each thing that was queued."""
        with self._lock:
            work, take_up = self._queue.take()
        future: Future[Any] = Future()
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
        self._results.append(lambda: take_up(future))
        self.on_result()


def engine_error(error: BaseException) -> EngineError:
    """Return what is told of an error of an operation on saved contexts."""
    if isinstance(error, CommandError):
        return error.error
    if isinstance(error, OSError):
        return EngineError(ErrorCode.UNAVAILABLE, f"saved contexts cannot be used: {error.strerror}")
    _log.error("an operation on saved contexts failed", exc_info=error)
    return EngineError(ErrorCode.INTERNAL, f"it failed: {type(error).__name__}: {error}")
