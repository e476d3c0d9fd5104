"""A fiber: one instance of a component that runs a call of an export in turns, and maybe others after it."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tartlet.errors import LimitExceededError, TartletError
from tartlet.wasm.callbacks import internal_error
from tartlet.wasm.executor import TURN_NS, Executor
from tartlet.wasm.host_function import SUSPEND, Err
from tartlet.wasm.instance import Instance
from tartlet.wasm.library import Words, ffi, lib
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.lower import Lower
from tartlet.wasm.timers import Timer
from tartlet.wasm.traps import error_from_trap
from tartlet.wasm.values import VALUE_WORDS

logger = logging.getLogger(__name__)

NS_PER_MS = 1_000_000
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberLimits:
    """What a fiber may use; None is no limit."""

    memory_bytes: int | None = None
    """Of each linear memory of the instance."""
    cpu_ns: int | None = None
    host_calls: int | None = None
    wasi_handles: int | None = 4096
    """WASI pollables held at once."""


class Status(enum.Enum):
    """Where a fiber is."""

    NEW = "new"  # `start` has not been called
    QUEUED = "queued"  # its turn will come: it starts, or was woken
    RUNNING = "running"  # it is its turn
    SLICED = "sliced"  # its turn was over before it was done; queued
    SUSPENDED = "suspended"  # in a host function, until `resume`
    RETURNED = "returned"  # between two calls, until `call`
    ENDED = "ended"


# Looking a member up in its class costs 60 ns in Python 3.11; there are several in each turn.
_QUEUED, _RUNNING, _SLICED = Status.QUEUED, Status.RUNNING, Status.SLICED
_SUSPENDED, _RETURNED, _ENDED = Status.SUSPENDED, Status.RETURNED, Status.ENDED

Outcome = Any
"""The export's result, lifted, or the `TartletError` that ended the fiber."""


class Fiber:
    """One instance and one call, from start to end; with `on_return`, several calls.

    Thread: all methods on the executor's thread. Whatever happens, `on_end` is called exactly once there, with the
    lifted result of the export or with a `TartletError`; by then the instance and all its memory are gone.

    With `on_return`, that gets the result of each call, and the instance stays for the next `call`, until `end`.
    """

    def __init__(
        self,
        executor: Executor,
        linked: LinkedComponent,
        *,
        limits: FiberLimits | None = None,
        state: Any = None,
        on_end: Callable[[Outcome], object] | None = None,
        on_return: Callable[[Any], object] | None = None,
    ) -> None:
        self.executor = executor
        self.linked = linked
        self.state = state  # the owner's; may be replaced at any time
        self.on_end = on_end
        self.on_return = on_return
        self.wasi: Any = None  # what wasi.py keeps for this fiber
        self.wasi_output: Callable[[str], object] | None = None  # hears what the guest writes to stdout and stderr
        self.status = Status.NEW
        self.end_error: TartletError | None = None  # set: the guest must not go on
        self.cpu_ns = 0  # of all turns that are over, with what the executor did to give them
        self.num_host_calls = 0
        self.is_held = False  # it does not go on after a host call
        self._is_complete = False  # suspended only because it is held: the call has its result
        self._flag = ffi.new("char[2]")  # what the continuation looks at: "" pending, "\x01" ready
        self._flag_address = int(ffi.cast("uintptr_t", self._flag))
        self._results: Words = None  # of the host call in which it is suspended
        self._lower: Lower | None = None
        self._timer: Timer | None = None
        self._instance: Instance | None = None
        self.limits = limits or FiberLimits()

    # ---- What owners call ----

    @property
    def is_ended(self) -> bool:
        """Whether `on_end` has been, or is being, called."""
        return self.status is _ENDED

    @property
    def limits(self) -> FiberLimits:
        """The limits in force. Setting them while the fiber is new or suspended takes effect at once."""
        return self._limits

    @limits.setter
    def limits(self, limits: FiberLimits) -> None:
        self._limits = limits
        self._max_cpu_ns = _UNLIMITED if limits.cpu_ns is None else limits.cpu_ns
        if self.end_error is None:
            self.max_host_calls = _UNLIMITED if limits.host_calls is None else limits.host_calls
        if self._instance is not None and self._instance.is_open:
            self._instance.limit_memory(limits.memory_bytes)

    def allow_cpu(self, cpu_ns: int) -> None:
        """Change the limit of CPU time, from its next turn on."""
        self._max_cpu_ns = cpu_ns

    def start(self, export: str, *args: Any) -> None:
        """Queue the fiber: instantiate the component and call `export`, when its turn comes.

        Raises `InvalidComponentError` if there is no such export, `TypeError` (`LoweringError`) if the arguments do not
        fit, `RunCancelledError` if the executor is closed.
        """
        assert self.status is Status.NEW
        assert self.executor.is_current
        instance = Instance(self.linked, export, args)
        try:
            self.executor.add(self)
        except BaseException:
            instance.discard()
            raise
        self._instance = instance
        self.status = _QUEUED

    def call(self, export: str, *args: Any) -> None:
        """Queue another call in the same instance, after one has returned. Raises `TypeError` as `start`.

        No effect on a fiber that was killed meanwhile.
        """
        if self.end_error is not None or self.status is _ENDED:
            return
        assert self.status is _RETURNED
        assert self._instance is not None
        self._instance.call_again(export, args)
        self.status = _QUEUED
        self.executor.wake(self)

    def resume(self, value: Any = None) -> None:
        """Complete the host call in which the fiber is suspended with its result.

        No effect on a fiber that was killed meanwhile or has ended: a completion may come too late. Raises
        `RuntimeError` if the fiber is in no host call.
        """
        if self.end_error is not None or self.status is _ENDED:
            return
        if self.status is not _SUSPENDED or self._is_complete:
            raise RuntimeError(f"a fiber that is {self.status.value} cannot be resumed")
        assert self._instance is not None
        if self._timer is not None:
            self._cancel_timer()
        if self._lower is not None:
            try:
                self._lower(self._results, 0, value, self._instance.context)
            except Exception as problem:
                self._reset_results()
                self.end(internal_error("the result of a host function", problem))
                return
        if self.is_held:
            self._is_complete = True
        else:
            self._wake()

    def hold(self) -> None:
        """Let the fiber not go on after the host call that it is in, or the next one, until `release`."""
        self.is_held = True

    def release(self) -> None:
        """Let a fiber that was held go on."""
        self.is_held = False
        if self._is_complete and self.status is _SUSPENDED:
            self._wake()

    def resume_error(self, err: Err) -> None:
        """Complete the host call in which the fiber is suspended with its err case."""
        self.resume(err)

    def suspend_until(self, deadline_ns: int, value: Callable[[], Any]) -> Any:
        """Return `SUSPEND` to a host function that is resumed with `value()` at the deadline, if not before.

        For host functions: `return fiber.suspend_until(deadline_ns, lambda: [])`.
        """

        def resume() -> None:
            try:
                self.resume(value())
            except Exception as problem:
                self.end(internal_error("a timer of a host function", problem))

        self._timer = self.executor.at(deadline_ns, resume)
        return SUSPEND

    def end(self, error: TartletError) -> None:
        """Kill the fiber wherever it is. The first error counts; no effect on one that has ended.

        A guest that runs is stopped at its next epoch or host call, within about 2 ms; nothing in it can prevent that.
        """
        assert self.executor.is_current
        if self.end_error is not None or self.status is _ENDED:
            return
        self.end_error = error
        self.max_host_calls = 0
        if self.status is _SUSPENDED:
            self._wake()
        elif self.status is _RETURNED:
            self.executor.wake(self)  # which finishes it
        elif self.status is _SLICED:
            self.executor.hurry(self)
            self.status = _QUEUED
        elif self.status is Status.NEW:
            self.executor.add(self)
            self.status = _QUEUED
        self.linked.wasm_engine.advance_epoch()  # not at the next tick: now

    # ---- What callbacks call, while the guest runs ----

    def suspend(self, results: Words, lower: Lower | None) -> int:
        """Leave the guest in its host call. Returns the address of the flag for its continuation."""
        self._results, self._lower = results, lower
        self._flag[0] = b"\0"
        self.status = _SUSPENDED
        return self._flag_address

    def suspend_held(self) -> int:
        """Leave the guest in its host call, which has its result, until `release`. Returns as `suspend`."""
        self._is_complete = True
        return self.suspend(None, None)

    def refuse_host_call(self) -> NoReturn:
        """End the fiber at a host call: it has been killed, or has made too many of them."""
        if self.end_error is not None:
            raise self.end_error
        raise LimitExceededError(
            "host_call_limit", limit="max_host_calls", used=self.num_host_calls, allowed=self.max_host_calls
        )

    def is_turn_over(self) -> bool:
        """Decide at an epoch whether the guest must yield. Ends it if it has used up its CPU time."""
        cpu_ns = self.cpu_ns + self.executor.uncharged_cpu_ns()
        if cpu_ns > self._max_cpu_ns:
            self._exceed_cpu(cpu_ns)
        return time.monotonic_ns() - self.executor.turn_began_ns > TURN_NS

    # ---- What the executor calls ----

    def run_turn(self) -> None:
        """Run the guest until it suspends, is sliced or ends."""
        instance = self._instance
        if instance is None or not instance.is_open:
            if self.end_error is not None:
                self._finish_unopened(self.end_error)
                return
            assert instance is not None
            instance.open(self, self._limits.memory_bytes)
        if self.status is _RETURNED:  # it was killed between two calls
            self._finish(self._close())
            return
        self.status = _RUNNING
        is_done = instance.poll()
        self.cpu_ns += self.executor.charge_cpu_ns()
        if is_done and self.on_return is not None and self.end_error is None and instance.has_returned:
            result = instance.end_call()
            self.status = _RETURNED
            self.cpu_ns += self.executor.charge_cpu_ns()  # of lifting, which a guest makes as long as it likes
            try:
                self.on_return(result)
            except Exception as problem:
                self.end(internal_error("what takes a call's result", problem))
        elif is_done:
            self._finish(self._close())
        elif self.status is _RUNNING:
            self.status = _SLICED
            self.executor.slice(self)
        elif self.cpu_ns > self._max_cpu_ns:
            self._exceed_cpu(self.cpu_ns)

    # ---- Steps of a life ----

    def _wake(self) -> None:
        if self._timer is not None:
            self._cancel_timer()
        self._results = None
        self._is_complete = False
        self._flag[0] = b"\x01"
        self.status = _QUEUED
        self.executor.wake(self)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _reset_results(self) -> None:
        """Take back results that were only half written."""
        lib.wasmtime_component_val_delete(self._results)
        ffi.memmove(self._results, bytes(8 * VALUE_WORDS), 8 * VALUE_WORDS)

    def _exceed_cpu(self, cpu_ns: int) -> None:
        used_ms, allowed_ms = -(-cpu_ns // NS_PER_MS), self._max_cpu_ns // NS_PER_MS
        self.end(LimitExceededError("cpu_limit", limit="max_cpu_ms", used=used_ms, allowed=allowed_ms))

    def _close(self) -> Outcome:
        """Free the instance and say how it ended: what killed it counts more than what came of it."""
        assert self._instance is not None
        ended = self._instance.close()
        if self.end_error is not None:
            return self.end_error
        if ended.trap is None:
            return ended.result
        return error_from_trap(ended.trap, memory_limit=self._limits.memory_bytes, memory_bytes=ended.memory_bytes)

    def _finish_unopened(self, error: TartletError) -> None:
        """End a fiber that was killed before its first turn."""
        if self._instance is not None:
            self._instance.discard()
        self._finish(error)

    def _finish(self, outcome: Outcome) -> None:
        """Tell the owner how it ended. By now nothing of it is left."""
        self._instance = None
        self._cancel_timer()
        self.wasi = None
        self.status = _ENDED
        self.executor.discard(self)
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            try:
                on_end(outcome)
            except Exception:
                logger.exception("on_end of a fiber failed")
        self.executor.charge_cpu_ns()  # to nobody
