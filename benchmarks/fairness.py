"""Three polite tenants beside one that floods the engine: how much longer they wait for their first tokens."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    Command,
    CreateContext,
    EngineClient,
    EngineStopped,
    Event,
    Failed,
    Finished,
    FreeContext,
    Generate,
    OpenRun,
    Sampling,
    Stop,
)

ROUNDS = 5
NUM_POLITE = 3
POLITE_PROMPT, POLITE_TOKENS = 256, 16
FLOOD_AT_ONCE = 32
FLOOD_PROMPT, FLOOD_TOKENS = 256, 64
KV_PAGES = 256
"""Half of what the flood alone would like to hold, so polite tenants find the cache full and others are preempted."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give times to the first token and between tokens, of the polite tenants, alone and beside the flood."""
    engine = compose.start_engine(settings.model, threads=settings.threads, kv_pages=KV_PAGES)
    traffic = Traffic(engine, settings.scaled(8, 2))
    rounds = measure_rounds(lambda _: _round(traffic), settings.scaled(ROUNDS, 1), settings)
    engine.close()
    for name in ("alone", "beside a flood"):
        yield row(rounds, f"first token, {name}: p95", "s")
        yield row(rounds, f"between tokens, {name}: p95", "s")
    yield row(rounds, "first token, beside a flood / alone: p95", "ratio", at_most(2))
    yield row(rounds, "preemptions", "times")


def _round(traffic: Traffic) -> Figures:
    alone = traffic.run(with_flood=False)
    before = traffic.engine.stats().preemptions
    flooded = traffic.run(with_flood=True)
    return {
        "first token, alone: p95": _p95(alone.first_tokens),
        "between tokens, alone: p95": _p95(alone.between_tokens),
        "first token, beside a flood: p95": _p95(flooded.first_tokens),
        "between tokens, beside a flood: p95": _p95(flooded.between_tokens),
        "first token, beside a flood / alone: p95": _p95(flooded.first_tokens) / _p95(alone.first_tokens),
        "preemptions": traffic.engine.stats().preemptions - before,
    }


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]


@dataclass(slots=True)
class Waits:
    """How long polite tenants waited, in seconds."""

    first_tokens: list[float] = field(default_factory=list)
    between_tokens: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Request:
    run_id: int
    context_id: int
    is_polite: bool
    last_s: float  # when it was submitted, or had its last token
    num_tokens: int = 0


class Traffic:
    """Requests of all tenants: whenever one has ended, its tenant makes the next."""

    def __init__(self, engine: EngineClient, num_requests: int) -> None:
        """Let each polite tenant make so many requests, one after the other."""
        self.engine = engine
        self._num_requests = num_requests
        self._numbers = random.Random(1)
        self._requests: dict[int, _Request] = {}  # by generation
        self._waits = Waits()
        self._num_left = 0
        self._problem: Event | None = None
        self._is_done = threading.Event()
        engine.listen(self._listen)

    def run(self, with_flood: bool) -> Waits:
        """Let the polite tenants make all of their requests, alone or beside a flood that lasts as long.

        Raises RuntimeError with the engine's own words if one fails.
        """
        self._waits, self._num_left, self._problem = Waits(), NUM_POLITE * self._num_requests, None
        self._is_done.clear()
        runs = {f"polite-{number}": self.engine.new_id() for number in range(NUM_POLITE)}
        commands: list[Command] = []
        if with_flood:
            runs["flood"] = self.engine.new_id()
        for tenant, run_id in runs.items():
            commands.append(OpenRun(run_id, tenant))
        if with_flood:
            for _ in range(FLOOD_AT_ONCE):
                commands += self._next_request(runs["flood"], is_polite=False)
        self.engine.submit(commands)
        if with_flood:
            time.sleep(0.2)  # the flood is there first
        for tenant, run_id in runs.items():
            if tenant != "flood":
                self.engine.submit(self._next_request(run_id, is_polite=True))
        self._is_done.wait()
        self.engine.submit([CloseRun(run_id) for run_id in runs.values()])
        self.engine.check_integrity()  # after that has been done
        self._requests.clear()
        if self._problem is not None:
            raise RuntimeError(f"a generation failed: {self._problem}")
        return self._waits

    def _next_request(self, run_id: int, is_polite: bool) -> list[Command]:
        context_id, generation_id = self.engine.new_id(), self.engine.new_id()
        (model,) = self.engine.models.values()
        length, num_tokens = (POLITE_PROMPT, POLITE_TOKENS) if is_polite else (FLOOD_PROMPT, FLOOD_TOKENS)
        prompt = tuple(self._numbers.choices(range(model.vocabulary_size), k=length))  # in nobody's cache
        self._requests[generation_id] = _Request(run_id, context_id, is_polite, time.monotonic())
        stop = Stop(max_tokens=num_tokens, ignore_eos=True)
        return [
            CreateContext(context_id, run_id),
            AppendTokens(context_id, prompt),
            Generate(generation_id, context_id, Sampling(seed=0, temperature=0.0), stop),
        ]

    def _listen(self, events: list[Event]) -> None:
        """Called on the engine's thread."""
        now_s = time.monotonic()
        for event in events:
            if isinstance(event, Chunk) and event.generation_id in self._requests:
                self._note_token(self._requests[event.generation_id], now_s)
            elif isinstance(event, Finished) and event.generation_id in self._requests:
                self._note_end(self._requests.pop(event.generation_id))
            elif isinstance(event, Failed | EngineStopped):
                self._problem = event
                self._is_done.set()

    def _note_token(self, request: _Request, now_s: float) -> None:
        if request.is_polite:
            waits = self._waits.between_tokens if request.num_tokens else self._waits.first_tokens
            waits.append(now_s - request.last_s)
        request.num_tokens += 1
        request.last_s = now_s

    def _note_end(self, request: _Request) -> None:
        self.engine.submit([FreeContext(request.context_id)])
        self._num_left -= request.is_polite
        if self._num_left == 0:
            self._is_done.set()
        elif not request.is_polite or self._num_left >= NUM_POLITE:
            self.engine.submit(self._next_request(request.run_id, request.is_polite))
