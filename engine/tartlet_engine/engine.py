"""The in-process engine: loads a model and serves it from a thread of its own."""

from __future__ import annotations

import itertools
import logging
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tartlet_engine.api import (
    CloseRun,
    Command,
    EngineClient,
    EngineConfig,
    EngineError,
    EngineStats,
    EngineStopped,
    ErrorCode,
    Event,
    ModelInfo,
    ModelText,
)
from tartlet_engine.inbox import Arrival, Inbox

if TYPE_CHECKING:
    from tartlet_engine.core import EngineCore

_log = logging.getLogger("tartlet_engine")

COMMANDS_S = 0.005
"""Of commands between two steps, but one command at least: a program can submit more than the engine can do."""

Listener = Callable[[list[Event]], None]


def start_engine(config: EngineConfig, progress: Callable[[str, float], None] | None = None) -> EngineClient:
    """Load a model and start its engine.

    Args:
        config: which model, and how to run it.
        progress: hears of what is being done and how much of it is done, 0 to 1, on the calling thread.

    Raises:
        weights.ModelLoadError: the model cannot be loaded or served.
        ValueError: a setting is out of its range.

    Cost: seconds, most of it reading weights and importing torch. On the calling thread.
    """
    _soften_spinning()
    from tartlet_engine.loading import load_engine

    loaded = load_engine(config, progress)
    return InProcessEngine(loaded.core, loaded.info, loaded.text, loaded.prepare_thread)


def _soften_spinning() -> None:
    """Let torch's OpenMP threads give up their core soon when they wait for each other.

    By default they spin for long at every barrier, of which a step has hundreds, and whoever spins may hold the core
    that the awaited thread needs. On two cores with a load of seven, a decode step of one sequence took 0.4 to 2 s so,
    and 0.15 s with this setting. libgomp reads it once, when torch is imported.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


class InProcessEngine:
    """An `api.EngineClient` whose engine is a thread of this process."""

    def __init__(self, core: EngineCore, info: ModelInfo, text: ModelText, prepare_thread: Callable[[], None]) -> None:
        """Start the thread. `prepare_thread` is called on it first, for settings that hold for a thread."""
        self._core: EngineCore | None = core
        self._info = info
        self._text = text
        self._prepare_thread = prepare_thread
        self._listener: Listener | None = None
        self._ids = itertools.count(1)
        self._stats = core.stats()
        self._wakeup = threading.Condition()
        self._inbox = Inbox()  # guarded by the lock of `_wakeup`
        self._errands: list[_IntegrityCheck] = []
        self._is_closing = False
        core.saves.on_result(self._notify)
        core.constraints.on_result = core.matchers.on_result = self._notify
        core.before_pass(lambda: self._deliver(core.take_events()))
        self._thread = threading.Thread(target=self._run, name="tartlet-engine", daemon=True)
        self._thread.start()

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """The loaded model by its name."""
        return {self._info.name: self._info}

    def text(self, model: str) -> ModelText:
        """Return the text side of the model. Raises KeyError for another name."""
        if model != self._info.name:
            raise KeyError(model)
        return self._text

    def new_id(self) -> int:
        """Return the next number."""
        return next(self._ids)

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """Queue commands of one run or of none for the next step. After the end of the engine they are dropped."""
        arrived_ns = time.monotonic_ns()
        with self._wakeup:
            self._inbox.add(commands, run_id, arrived_ns)
            self._wakeup.notify()

    def listen(self, listener: Listener | None) -> None:
        """Set who hears of events, on the engine's thread. Raises RuntimeError if somebody else does."""
        with self._wakeup:
            if listener is not None and self._listener is not None:
                raise RuntimeError("somebody listens to this engine already")
            self._listener = listener

    def stats(self) -> EngineStats:
        """Return the counters as of the last step."""
        return self._stats

    def check_integrity(self) -> None:
        """Raise AssertionError unless everything adds up. Waits for the step in progress."""
        if threading.current_thread() is self._thread:
            if self._core is not None:
                self._core.check_integrity()
            return
        check = _IntegrityCheck()
        with self._wakeup:
            if self._is_closing:
                return
            self._errands.append(check)
            self._wakeup.notify()
        check.done.wait()
        if check.error is not None:
            raise check.error

    def close(self) -> None:
        """Stop the engine and free the model. Idempotent.

        Waits for the step in progress, and until the contexts that were saved are on their disk.
        """
        with self._wakeup:
            self._is_closing = True
            self._wakeup.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        """Serve until closed: the thread's whole life."""
        core = self._core
        assert core is not None
        try:
            self._prepare_thread()
            while self._serve_once(core):
                pass
            self._deliver([EngineStopped(EngineError(ErrorCode.UNAVAILABLE, "the engine was closed"))])
        except BaseException as error:
            _log.exception("the engine stops")
            message = f"the engine stopped: {type(error).__name__}: {error}"
            self._deliver([EngineStopped(EngineError(ErrorCode.INTERNAL, message))])
        finally:
            core.close()
            self._core = None
            with self._wakeup:
                self._is_closing = True
                errands, self._errands = self._errands, []
            for check in errands:
                check.done.set()

    def _serve_once(self, core: EngineCore) -> bool:
        """Wait for something to do, then carry out commands and one step. Returns False when closed."""
        with self._wakeup:
            while not (self._inbox or self._errands or self._is_closing or core.has_work):
                self._wakeup.wait()
            if self._is_closing:
                return False
        self._handle_commands(core)
        if core.has_work:
            self._wait_for_answers(core)
            core.sample_answered()
            core.step()
        self._stats = core.stats()
        self._deliver(core.take_events())
        with self._wakeup:
            errands: list[_IntegrityCheck] = []
            if not self._inbox:  # what was submitted before comes before
                errands, self._errands = self._errands, []
        for check in errands:
            check.carry_out(core)
        return True

    def _wait_for_answers(self, core: EngineCore) -> None:
        """Let answers of programs come that are due, so that they are in the next step with the others."""
        core.begin_waiting()
        while (left_ns := core.wait_ns_left) > 0:
            with self._wakeup:
                if not (self._inbox or self._is_closing):
                    self._wakeup.wait(left_ns / 1e9)
                if self._is_closing:
                    return
            self._handle_commands(core)

    def _handle_commands(self, core: EngineCore) -> None:
        """Carry out commands, by turns between runs: those that are there, or as many as there is time for."""
        seconds: defaultdict[str, float] = defaultdict(float)  # by tenant
        began = before = time.monotonic()
        while (arrival := self._next_command()) is not None:
            self._carry_out(core, arrival, deadline=began + COMMANDS_S)
            now = time.monotonic()
            if arrival.tenant is not None:
                seconds[arrival.tenant] += now - before
            if now - began >= COMMANDS_S:
                break
            before = now
        for tenant, spent in seconds.items():
            core.charge(tenant, spent)

    def _carry_out(self, core: EngineCore, arrival: Arrival, deadline: float) -> None:
        """Carry out a command; of closing a run, as much as there is time for."""
        command = arrival.command
        if isinstance(command, CloseRun) and not core.prepare_close(
            command.run_id, lambda: time.monotonic() >= deadline
        ):
            with self._wakeup:
                self._inbox.put_back(arrival, command.run_id)
        else:
            core.handle(command, arrival.arrived_ns)

    def _next_command(self) -> Arrival | None:
        with self._wakeup:
            return self._inbox.take() if self._inbox else None

    def _notify(self) -> None:
        """Wake the thread: there is a result to take up."""
        with self._wakeup:
            self._wakeup.notify()

    def _deliver(self, events: list[Event]) -> None:
        """Hand events to the listener; its own faults must not stop the engine."""
        listener = self._listener  # read once: it may be given back meanwhile
        if events and listener is not None:
            try:
                listener(events)
            except Exception:
                _log.exception("the listener failed on %d events", len(events))


class _IntegrityCheck:
    """A check that another thread waits for."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: AssertionError | None = None

    def carry_out(self, core: EngineCore) -> None:
        try:
            core.check_integrity()
        except AssertionError as error:
            self.error = error
        finally:
            self.done.set()
