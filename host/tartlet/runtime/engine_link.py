"""Between runs and engine: carries commands there and events back, in batches. Lives on the executor's thread."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tartlet_engine.api import TARGET_IDS, Chunk, Command, EngineClient, EngineError, EngineStopped, Event, PagesHeld

_MAX_QUIET_BATCHES = 64
_MOST_KEPT_NS = 500_000
"""For so long commands wait for those of other fibers whose turn comes next."""

NEVER = 1 << 64
"""A time of `time.monotonic_ns` that does not come."""


class Run(Protocol):
    """A run, as far as deliveries concern it."""

    def wake(self) -> None:
        """End the run's wait, if something that it waits for is ready."""
        ...


class Target(Protocol):
    """Whom an event concerns: a generation, an operation, a context or a run."""

    @property
    def run(self) -> Run:
        """The run that it belongs to."""
        ...

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in an event that came at a time of `time.monotonic_ns`."""
        ...


class Poster(Protocol):
    """The executor, as far as the link needs it."""

    @property
    def has_woken(self) -> bool:
        """Whether a fiber that was woken waits for its turn."""
        ...

    def post(self, action: Callable[[], object]) -> None:
        """Call `action` soon, on the executor's thread. From any thread."""
        ...


class EngineLink:
    """Route what one engine says to those whom it concerns.

    Commands of one turn of a fiber leave together: generations that a program starts at once begin in the same step.
    So do those of fibers that were woken together, up to a time: their answers come to the engine at once.
    Chunks that nobody waits for, and `PagesHeld`, do not wake the executor; they are taken in with the next event that
    does, or by `catch_up`.

    Args:
        client: The engine. The link becomes its listener, until it is closed.
        executor: Whose thread everything here runs on, but for `_listen`.
        on_stop: Told once, on that thread, when the engine is gone.

    Raises:
        RuntimeError: Somebody else listens to the engine.
    """

    def __init__(self, client: EngineClient, executor: Poster, on_stop: Callable[[EngineError], None]) -> None:
        self.client = client
        self.new_id = client.new_id
        """An id that the engine has not heard. From any thread."""
        self._executor = executor
        self._on_stop = on_stop
        self._targets: dict[int, Target] = {}
        self._quiet_until_ns: dict[int, int] = {}  # by generation: when its chunks begin to matter again
        self._outbox: dict[int | None, list[Command]] = {}  # by run
        self._ids_by_run: defaultdict[Run, set[int]] = defaultdict(set)
        self._inbox: deque[_Batch] = deque()  # filled on the engine's thread
        self._flush_at_ns = 0  # at the latest, what is in the outbox
        self._is_delivery_posted = False
        client.listen(self._listen)

    def submit(self, command: Command, run_id: int | None) -> None:
        """Send a command of a run, or of none, soon. Runs send theirs by `RunState.submit`."""
        if not self._outbox:
            self._flush_at_ns = time.monotonic_ns() + _MOST_KEPT_NS
            self._executor.post(self._flush_soon)
        self._outbox.setdefault(run_id, []).append(command)

    def _flush_soon(self) -> None:
        """Send what has been submitted, if no fiber that was woken is left to submit more, or that takes long."""
        if self._executor.has_woken and time.monotonic_ns() < self._flush_at_ns:
            self._executor.post(self._flush_soon)  # it comes after the next turn
        else:
            self.flush()

    def flush(self) -> None:
        """Send what has been submitted."""
        outbox, self._outbox = self._outbox, {}
        for run_id, commands in outbox.items():
            self.client.submit(commands, run_id)

    def close(self) -> None:
        """Send what is left, and stop listening."""
        self.flush()
        self.client.listen(None)

    def register(self, target_id: int, target: Target, *, quiet_until_ns: int = 0) -> None:
        """Route events with that id to `target`; quiet: until then, its chunks need not be delivered at once."""
        self._targets[target_id] = target
        self._ids_by_run[target.run].add(target_id)
        self.set_quiet_until(target_id, quiet_until_ns)

    def set_quiet_until(self, target_id: int, until_ns: int) -> None:
        """Begin a quiet time, or end it."""
        self._quiet_until_ns[target_id] = until_ns

    def unregister(self, target_id: int) -> None:
        """End the routing of that id; events that still come are dropped."""
        target = self._targets.pop(target_id, None)
        self._quiet_until_ns.pop(target_id, None)
        if target is not None:
            self._ids_by_run[target.run].discard(target_id)

    def unregister_run(self, run: Run) -> None:
        """End the routing of everything that belongs to a run."""
        for target_id in self._ids_by_run.pop(run, ()):
            del self._targets[target_id]
            self._quiet_until_ns.pop(target_id, None)

    def catch_up(self) -> None:
        """Take in the quiet chunks that have come so far. Wakes nobody, so a host function may call it."""
        while self._inbox and self._inbox[0].is_quiet:
            self._take_in(self._inbox.popleft())

    def _listen(self, events: list[Event]) -> None:
        """Called on the engine's thread, once a step."""
        now_ns = time.monotonic_ns()
        is_quiet = all(self._is_quiet(event, now_ns) for event in events)
        self._inbox.append(_Batch(now_ns, events, is_quiet))
        if not self._is_delivery_posted and (not is_quiet or len(self._inbox) >= _MAX_QUIET_BATCHES):
            self._is_delivery_posted = True
            self._executor.post(self._deliver)

    def _is_quiet(self, event: Event, now_ns: int) -> bool:
        if type(event) is PagesHeld:
            return True
        return type(event) is Chunk and self._quiet_until_ns.get(event.generation_id, 0) > now_ns

    def _deliver(self) -> None:
        self._is_delivery_posted = False  # before the inbox is emptied: what comes in between is posted again
        runs: dict[Run, None] = {}
        while self._inbox:
            runs.update(self._take_in(self._inbox.popleft()))
        for run in runs:
            run.wake()

    def _take_in(self, batch: _Batch) -> dict[Run, None]:
        """Hand a step's events to their targets; the runs concerned."""
        runs: dict[Run, None] = {}
        for event in batch.events:
            if isinstance(event, EngineStopped):
                self._on_stop(event.error)
                continue
            target = self._targets.get(TARGET_IDS[type(event)](event))
            if target is not None:
                target.handle(event, batch.at_ns)
                runs[target.run] = None
        return runs


class _Batch(NamedTuple):
    """What one step of the engine produced."""

    at_ns: int
    events: list[Event]
    is_quiet: bool
