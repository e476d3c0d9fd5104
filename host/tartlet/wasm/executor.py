"""The executor: one thread that runs many fibers in turn."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from tartlet.errors import RunCancelledError
from tartlet.wasm.timers import Timer, Timers
from tartlet.wasm.wasm_engine import WasmEngine

if TYPE_CHECKING:
    from tartlet.wasm.fiber import Fiber

logger = logging.getLogger(__name__)

TURN_NS = 800_000
"""A turn that has lasted this long ends at the next epoch; a shorter one goes on, so that a woken fiber gets its
share."""

_SLICED_EVERY = 8
"""Woken fibers come first, but at least every so many turns goes to a sliced one, if there is any."""

_NOT_WORTH_MEASURING_NS = 20_000

_LONGEST_SLEEP_SECONDS = 3600.0  # a guest may set a timer for centuries, which locks cannot wait


class Executor:
    """Runs fibers on its own thread: woken ones first, in the order of waking, then those whose time was sliced.

    Never the main thread: Python raises KeyboardInterrupt there, and an exception must not leave a host function. The
    thread sleeps when there is nothing to run: a posted call or the next timer wakes it.

    Thread: `post` and `close` may be called from any thread; everything else, and all methods of its fibers, only on
    the executor's own (so from host functions, timers, posted calls and `on_end`).
    """

    def __init__(self, wasm_engine: WasmEngine, name: str = "tartlet-executor") -> None:
        self.wasm_engine = wasm_engine
        self.is_busy = False  # read by the ticker
        self.turn_began_ns = 0  # monotonic; read by the fibers' epoch callback
        self._ticker = wasm_engine.ticker
        self._posted: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._timers = Timers()
        self._fibers: set[Fiber] = set()
        self._woken: deque[Fiber] = deque()
        self._sliced: deque[Fiber] = deque()
        self._num_turns = 0
        self._charged_cpu_ns = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ticker.add(self)
        self._thread.start()
        atexit.register(self.close)  # while the interpreter still works: a guest may be in a host function

    @property
    def num_fibers(self) -> int:
        """How many fibers have been started and have not ended. Thread: any."""
        return len(self._fibers)

    @property
    def has_woken(self) -> bool:
        """Whether a fiber that was woken waits for its turn. Thread: the executor's."""
        return bool(self._woken)

    @property
    def is_current(self) -> bool:
        """Whether this is the executor's thread. Thread: any."""
        return threading.current_thread() is self._thread

    @property
    def num_timers(self) -> int:
        """How many timers are set. Thread: the executor's."""
        return len(self._timers)

    def post(self, call: Callable[[], object]) -> None:
        """Have `call` run soon on the executor's thread, in the order posted. Thread: any. Its errors are logged."""
        self._posted.put(call)

    def at(self, deadline_ns: int, action: Callable[[], object]) -> Timer:
        """Have `action` run once `time.monotonic_ns()` has reached the deadline. Thread: the executor's."""
        return self._timers.at(deadline_ns, action)

    def close(self) -> None:
        """End all fibers as cancelled, then the thread. Returns when it has ended. Thread: any but the executor's."""
        atexit.unregister(self.close)
        self.post(self._begin_closing)
        self._thread.join()
        self._ticker.remove(self)

    # ---- What fibers call ----

    def add(self, fiber: Fiber) -> None:
        """Take in a fiber that starts."""
        if self._is_closing:
            raise RunCancelledError("the executor is closed")
        self._fibers.add(fiber)
        self._woken.append(fiber)

    def discard(self, fiber: Fiber) -> None:
        """Let go of a fiber that has ended."""
        self._fibers.discard(fiber)

    def wake(self, fiber: Fiber) -> None:
        """Queue a suspended fiber."""
        self._woken.append(fiber)

    def slice(self, fiber: Fiber) -> None:
        """Queue a fiber whose turn was over before it was done."""
        self._sliced.append(fiber)

    def hurry(self, fiber: Fiber) -> None:
        """Queue a sliced fiber like a woken one."""
        self._sliced.remove(fiber)
        self._woken.append(fiber)

    def charge_cpu_ns(self) -> int:
        """Take the CPU time of this thread since the last charge. Cost: one system call, 0.6 us."""
        now_ns = time.thread_time_ns()
        spent_ns = now_ns - self._charged_cpu_ns
        self._charged_cpu_ns = now_ns
        return spent_ns

    def uncharged_cpu_ns(self) -> int:
        """Tell the CPU time of this thread since the last charge."""
        return time.thread_time_ns() - self._charged_cpu_ns

    # ---- The thread ----

    def _run(self) -> None:
        self._set_busy()
        while not (self._is_closing and not self._fibers):
            if not self._posted.empty():
                self._run_posted()
            if self._timers.next_deadline_ns is not None:
                self._run_due_timers()
            fiber = self._next_fiber()
            if fiber is not None:
                self._num_turns += 1
                self.turn_began_ns = time.monotonic_ns()
                self._guard(fiber.run_turn)
            elif self._posted.empty() and not self._is_closing:
                self._sleep()
        self.is_busy = False

    def _next_fiber(self) -> Fiber | None:
        if self._woken and (self._num_turns % _SLICED_EVERY or not self._sliced):
            return self._woken.popleft()
        return self._sliced.popleft() if self._sliced else None

    def _run_posted(self) -> None:
        began_ns = time.monotonic_ns()
        for _ in range(self._posted.qsize()):  # what these post comes after the next turn
            self._guard(self._posted.get())
        self._leave_uncharged_since(began_ns)

    def _run_due_timers(self) -> None:
        began_ns = time.monotonic_ns()
        while (action := self._timers.pop_due(began_ns)) is not None:
            self._guard(action)
        self._leave_uncharged_since(began_ns)

    def _leave_uncharged_since(self, began_ns: int) -> None:
        """Charge no fiber for calls of the owner's that took long."""
        if time.monotonic_ns() - began_ns > _NOT_WORTH_MEASURING_NS:
            self.charge_cpu_ns()

    def _sleep(self) -> None:
        """Wait for a posted call or the next timer."""
        deadline_ns = self._timers.next_deadline_ns
        timeout = None if deadline_ns is None else _seconds_until(deadline_ns)
        self.is_busy = False
        try:
            call = self._posted.get(timeout=timeout)
        except Empty:
            return
        finally:
            self._set_busy()
        self._guard(call)

    def _set_busy(self) -> None:
        self.is_busy = True
        if self._ticker.is_parked:
            self._ticker.wake()

    def _guard(self, call: Callable[[], object]) -> None:
        """Run a call whose exception must not take the thread, and with it every run, down."""
        try:
            call()
        except BaseException:
            logger.exception("a call on the executor's thread failed")

    def _begin_closing(self) -> None:
        self._is_closing = True
        for fiber in list(self._fibers):
            fiber.end(RunCancelledError("the host is closing"))


def _seconds_until(deadline_ns: int) -> float:
    return min(max(0, deadline_ns - time.monotonic_ns()) / 1e9, _LONGEST_SLEEP_SECONDS)
