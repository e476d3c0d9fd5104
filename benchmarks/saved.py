"""What opening a saved context of 512 tokens takes, from memory and from a file, against computing its tokens."""

from __future__ import annotations

import queue
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import models
from tartlet_engine.api import (
    AppendTokens,
    CloseRun,
    Command,
    CreateContext,
    DeleteSaved,
    Done,
    EngineConfig,
    Event,
    FlushContext,
    Opened,
    OpenRun,
    OpenSaved,
    PagesHeld,
    SaveContext,
)
from tartlet_engine.engine import start_engine

ROUNDS = 9
CONTEXT_LEN = 512  # tokens
NAME = "context"


def measure(settings: Settings) -> Iterator[Row]:
    """Give the times of saving, opening and computing."""
    with tempfile.TemporaryDirectory(prefix="tartlet-benchmark-") as folder:
        stores = [_Store(settings, None), _Store(settings, Path(folder))]
        numbers = random.Random(1)
        rounds = measure_rounds(lambda _: _round(numbers, *stores), settings.scaled(ROUNDS, 1), settings)
        for store in stores:
            store.close()
    for name in ("compute", "save in memory", "save to a file", "open from memory", "open from a file"):
        yield row(rounds, name, "s")
    yield row(rounds, "opened, computed again", "tokens", at_most(0))
    yield row(rounds, "open from memory / compute", "ratio", at_most(0.1))
    yield row(rounds, "open from a file / compute", "ratio", at_most(0.25))


class _Store:
    """An engine that saves in memory or into a folder."""

    def __init__(self, settings: Settings, folder: Path | None) -> None:
        self._folder = folder
        self._engine = start_engine(
            EngineConfig(
                model_name=settings.model,
                model_path=str(models.pull(settings.model)),
                threads=settings.threads,
                kv_pages=1024,
                prefix_cache=False,
                saved_path=None if folder is None else str(folder),
            )
        )
        self._events: queue.Queue[Event] = queue.Queue()
        self._engine.listen(lambda events: [self._events.put(event) for event in events])
        self.vocabulary_size = next(iter(self._engine.models.values())).vocabulary_size

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()

    def times(self, tokens: Sequence[int]) -> tuple[float, float, float, int]:
        """Return the seconds of computing, saving and opening a context, and how many tokens the last one computed."""
        run_id, context_id = self._engine.new_id(), self._engine.new_id()
        self._engine.submit([OpenRun(run_id), CreateContext(context_id, run_id)])
        append = AppendTokens(context_id, tuple(tokens))
        computing = self._time([append, FlushContext(context_id, self._engine.new_id())], Done)
        saving = self._time([SaveContext(context_id, self._engine.new_id(), NAME)], Done)
        self._wait_for_file()
        computed = self._engine.stats().prefill_tokens
        opened_id = self._engine.new_id()
        opening = self._time([OpenSaved(self._engine.new_id(), run_id, opened_id, NAME)], Opened)
        self._time([FlushContext(opened_id, self._engine.new_id())], Done)  # nothing is left to compute
        self._time([DeleteSaved(self._engine.new_id(), run_id, NAME)], Done)
        self._engine.check_integrity()
        self._engine.submit([CloseRun(run_id)])
        return computing, saving, opening, self._engine.stats().prefill_tokens - computed

    def _time(self, commands: list[Command], answer: type[Any]) -> float:
        began = time.perf_counter()
        self._engine.submit(commands)
        while isinstance(event := self._events.get(), PagesHeld):
            continue
        seconds = time.perf_counter() - began
        if not isinstance(event, answer):
            raise RuntimeError(f"the engine answered {event}")
        return seconds

    def _wait_for_file(self) -> None:
        """Wait until what was saved has been written, after which only the file has it."""
        if self._folder is None:
            return
        while not any(self._folder.rglob("*.safetensors")):
            time.sleep(0.001)


def _round(numbers: random.Random, memory: _Store, file: _Store) -> Figures:
    tokens = numbers.choices(range(memory.vocabulary_size), k=CONTEXT_LEN)
    computing, save_in_memory, from_memory, again = memory.times(tokens)
    _, save_to_file, from_file, again_from_file = file.times(tokens)
    return {
        "compute": computing,
        "save in memory": save_in_memory,
        "save to a file": save_to_file,
        "open from memory": from_memory,
        "open from a file": from_file,
        "opened, computed again": again + again_from_file,
        "open from memory / compute": from_memory / computing,
        "open from a file / compute": from_file / computing,
    }
