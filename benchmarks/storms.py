"""What one hostile run does to its neighbours besides asking for tokens: a neighbour's decode alone and beside storms.

Each storm is what a program can ask for in a loop, from a tenant of its own: as many operations under way as a run's
handles allow. Nothing of it is a step of the model, but for the prompts that it begins with.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Row, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    Command,
    CreateContext,
    Done,
    EngineClient,
    EngineStopped,
    Event,
    EvictContext,
    Failed,
    Fence,
    Finished,
    FlushContext,
    ForkContext,
    FreeContext,
    Generate,
    Opened,
    OpenRun,
    OpenSaved,
    Sampling,
    SaveContext,
    Stop,
)

ROUNDS = 3
CONTEXT_LEN = 2000
"""Tokens of the context that a storm works with."""
NEIGHBOUR_PROMPT, NEIGHBOUR_TOKENS = 64, 96
NUM_UNDER_WAY = 64
"""Operations that a storm keeps under way; of commands that are not answered, windows of as many."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give the neighbour's tokens a second and its longest wait for one, alone and beside each storm."""
    with tempfile.TemporaryDirectory() as folder:
        engine = compose.start_engine(settings.model, threads=settings.threads, saved_path=Path(folder))
        crowd = Crowd(engine, settings.scaled(CONTEXT_LEN, 40), settings.scaled(NEIGHBOUR_TOKENS, 8))
        rounds = measure_rounds(
            lambda _: _round(crowd), settings.scaled(ROUNDS, 1), Settings(settings.is_quick, patience=0)
        )
        engine.close()
    for name in ("alone", *STORMS):
        beside = "alone" if name == "alone" else f"beside {name}"
        yield row(rounds, f"{beside}: rate", "tokens/s")
        yield row(rounds, f"{beside}: longest wait", "s")
        if name != "alone":
            yield row(rounds, f"{beside}: storm", "operations/s")


def _round(crowd: Crowd) -> Figures:
    figures: dict[str, float] = {}
    for name in (None, *STORMS):
        beside = "alone" if name is None else f"beside {name}"
        seen = crowd.run(name)
        figures[f"{beside}: rate"] = seen.rate
        figures[f"{beside}: longest wait"] = seen.longest_wait
        if name is not None:
            figures[f"{beside}: storm"] = seen.storm_rate
    return figures


@dataclass(slots=True)
class Seen:
    """How the neighbour fared."""

    token_times: list[float] = field(default_factory=list)
    num_storm_operations: int = 0

    @property
    def seconds(self) -> float:
        """From its first token to its last."""
        return self.token_times[-1] - self.token_times[0]

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return (len(self.token_times) - 1) / self.seconds

    @property
    def longest_wait(self) -> float:
        """For one token, in seconds."""
        return max(after - before for before, after in itertools.pairwise(self.token_times))

    @property
    def storm_rate(self) -> float:
        """Operations of the storm, a second."""
        return self.num_storm_operations / self.seconds


class Crowd:
    """The neighbour, and one storm beside it or none."""

    def __init__(self, engine: EngineClient, context_len: int, num_tokens: int) -> None:
        """Let the storm work with a context of so many tokens, while the neighbour generates `num_tokens`."""
        self.engine = engine
        self.context_len = context_len
        self._num_tokens = num_tokens
        self._seen = Seen()
        self._answers: dict[int, Callable[[], None]] = {}
        self._generation_id = 0
        self._problem: Event | None = None
        self._is_done = threading.Event()
        self._is_over = False  # the storm: what it still submits comes to nothing
        engine.listen(self._listen)

    def run(self, storm: str | None) -> Seen:
        """Let the neighbour generate. Raises RuntimeError if something fails."""
        self._seen, self._problem, self._generation_id = Seen(), None, 0
        self._answers.clear()
        self._is_over = False
        self._is_done.clear()
        calm_id, storm_id = self.engine.new_id(), self.engine.new_id()
        with self._storm(storm, storm_id):
            context_id, generation_id = self.engine.new_id(), self.engine.new_id()
            self._seen.num_storm_operations = 0
            self._generation_id = generation_id
            stop = Stop(max_tokens=self._num_tokens, ignore_eos=True)
            commands: list[Command] = [
                OpenRun(calm_id, "calm"),
                CreateContext(context_id, calm_id),
                AppendTokens(context_id, tuple(range(10, 10 + NEIGHBOUR_PROMPT))),
                Generate(generation_id, context_id, Sampling(seed=0, temperature=0.0), stop),
            ]
            self.engine.submit(commands, calm_id)
            self._is_done.wait()
        self.engine.submit([CloseRun(calm_id)], calm_id)
        self.engine.check_integrity()  # after that has been done
        if self._problem is not None:
            raise RuntimeError(f"something failed: {self._problem}")
        return self._seen

    def ask(self, run_id: int, commands: list[Command], operation_id: int, then: Callable[[], None]) -> None:
        """Submit commands of the storm; `then` is called when the operation is answered."""
        self._answers[operation_id] = then
        self.engine.submit(commands, run_id)

    @contextmanager
    def _storm(self, name: str | None, run_id: int) -> Iterator[None]:
        if name is None:
            yield
            return
        context_id, operation_id = self.engine.new_id(), self.engine.new_id()
        is_ready = threading.Event()
        commands: list[Command] = [
            OpenRun(run_id, "storm"),
            CreateContext(context_id, run_id),
            AppendTokens(context_id, tuple(10 + number % 100 for number in range(self.context_len))),
            FlushContext(context_id, operation_id),
        ]
        self.ask(run_id, commands, operation_id, is_ready.set)
        is_ready.wait()
        for number in range(NUM_UNDER_WAY):
            STORMS[name](self, run_id, context_id, number)
        time.sleep(0.1)  # the storm is there first
        yield
        self._is_over = True
        self.engine.submit([CloseRun(run_id)], run_id)

    def note_operations(self, count: int) -> None:
        """Count what the storm has got done."""
        self._seen.num_storm_operations += count

    def _listen(self, events: list[Event]) -> None:
        """Called on the engine's thread."""
        now_s = time.monotonic()
        for event in events:
            if isinstance(event, Chunk) and event.generation_id == self._generation_id:
                self._seen.token_times += [now_s] * len(event.token_ids)
            elif isinstance(event, Finished) and event.generation_id == self._generation_id:
                self._is_done.set()
            elif isinstance(event, Done | Opened):
                if (then := self._answers.pop(event.operation_id, None)) and not self._is_over:
                    then()
            elif isinstance(event, Failed) and (self._is_over or event.failed_id not in self._answers):
                continue  # of a storm that is over
            elif isinstance(event, Failed | EngineStopped):
                self._problem = event
                self._is_done.set()


def _fork_and_free(crowd: Crowd, run_id: int, context_id: int, number: int) -> None:
    """Fork, fill and free contexts: hundreds of commands, of which none takes part in a step."""
    commands: list[Command] = []
    for _ in range(8):
        child_id = crowd.engine.new_id()
        commands += [
            ForkContext(context_id, child_id, crowd.context_len),
            AppendTokens(child_id, (5,) * 16),
            FreeContext(child_id),
        ]

    def again() -> None:
        crowd.note_operations(len(commands))
        _fork_and_free(crowd, run_id, context_id, number)

    fence_id = crowd.engine.new_id()
    crowd.ask(run_id, [*commands, Fence(fence_id, run_id)], fence_id, again)


def _evict(crowd: Crowd, run_id: int, context_id: int, number: int) -> None:
    """Drop two tokens near the beginning of a fork, so that all after them move."""
    child_id, operation_id = crowd.engine.new_id(), crowd.engine.new_id()
    commands: list[Command] = [
        ForkContext(context_id, child_id, crowd.context_len),
        EvictContext(child_id, operation_id, 3, 5),
    ]

    def again() -> None:
        crowd.note_operations(1)
        crowd.engine.submit([FreeContext(child_id)], run_id)
        _evict(crowd, run_id, context_id, number)

    crowd.ask(run_id, commands, operation_id, again)


def _save(crowd: Crowd, run_id: int, context_id: int, number: int) -> None:
    """Save the context under one of a few names, again and again."""
    operation_id = crowd.engine.new_id()

    def again() -> None:
        crowd.note_operations(1)
        _save(crowd, run_id, context_id, number)

    command = SaveContext(context_id, operation_id, f"storm-{number % 4}", overwrite=True)
    crowd.ask(run_id, [command], operation_id, again)


def _open(crowd: Crowd, run_id: int, context_id: int, number: int) -> None:
    """Save the context once, then open it again and again."""
    saving_id = crowd.engine.new_id()
    command = SaveContext(context_id, saving_id, f"storm-{number % 4}", overwrite=True)

    def open_it() -> None:
        operation_id, opened_id = crowd.engine.new_id(), crowd.engine.new_id()

        def again() -> None:
            crowd.note_operations(1)
            crowd.engine.submit([FreeContext(opened_id)], run_id)
            open_it()

        crowd.ask(run_id, [OpenSaved(operation_id, run_id, opened_id, f"storm-{number % 4}")], operation_id, again)

    crowd.ask(run_id, [command], saving_id, open_it)


STORMS: dict[str, Callable[[Crowd, int, int, int], None]] = {
    "forks": _fork_and_free,
    "evictions": _evict,
    "saves": _save,
    "openings": _open,
}
