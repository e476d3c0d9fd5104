"""What constraints cost: compiling, masks by themselves, and what a step of the engine waits for them."""

from __future__ import annotations

import json
import queue
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import models
from tartlet_engine.api import (
    AppendTokens,
    CloseRun,
    CompileConstraint,
    ConstraintKind,
    CreateContext,
    Done,
    EngineConfig,
    Event,
    Finished,
    Generate,
    OpenRun,
    Sampling,
    Stop,
)
from tartlet_engine.constraints.grammars import compile_grammar
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.rows import ConstrainedRows
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.engine import start_engine
from tartlet_engine.tokenizer import ModelTokenizer

ROUNDS = 5
WALKS = 20  # through the schema, each with other random tokens
NUM_SEQUENCES = 8
NUM_TOKENS = 64

_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "pattern": "^[a-z.]{1,20}@[a-z]{1,20}\\.com$"},
        "role": {"enum": ["admin", "author", "reader"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 4},
    },
    "required": ["name", "age", "role", "tags"],
    "additionalProperties": False,
}
SCHEMA = json.dumps({"type": "array", "items": _PERSON, "minItems": 8, "maxItems": 16})


def measure(settings: Settings) -> Iterator[Row]:
    """Give the times of the library alone, then those of tokens with and without a constraint."""
    library = _Library(settings)
    walks = settings.scaled(WALKS, 1)
    rounds = measure_rounds(lambda number: library.round(number, walks), settings.scaled(ROUNDS, 1), settings)
    yield row(rounds, "compile", "us")
    yield row(rounds, "first mask", "us")
    yield row(rounds, "mask, p50", "us")
    yield row(rounds, "mask, p99", "us")
    yield row(rounds, "next token, p50", "us")
    with_engine = _Engine(settings)
    rounds = measure_rounds(lambda _: with_engine.round(), settings.scaled(ROUNDS, 1), settings)
    with_engine.close()
    yield row(rounds, "8 sequences, free", "ms/token")
    yield row(rounds, "8 sequences, constrained", "ms/token")
    yield row(rounds, "forced tokens of a step, p50", "us")
    yield row(rounds, "forced tokens of a step, p90", "us")
    yield row(rounds, "waited for a mask, p50", "us", at_most(20))
    yield row(rounds, "waited for a mask, p99", "us", at_most(200))


class _Library:
    """llguidance alone, on the model's vocabulary."""

    def __init__(self, settings: Settings) -> None:
        text = ModelTokenizer(Path(models.pull(settings.model)))
        self._tokenizer = Vocabulary.of(text, text.vocabulary_size).make_tokenizer()
        self._words = np.zeros(-(-text.vocabulary_size // 32), dtype=np.uint32)

    def round(self, number: int, walks: int) -> Figures:
        """Compile the schema, and write it with random tokens that the masks allow."""
        choose = random.Random(number)
        prototype, compiling = _timed(lambda: compile_grammar(self._tokenizer, ConstraintKind.JSON_SCHEMA, SCHEMA))
        first, masks, advances = [], [], []
        for _ in range(walks):
            matcher = prototype.deep_copy()
            first.append(self._mask(matcher))
            for _ in range(NUM_TOKENS):
                if matcher.is_stopped():
                    break
                masks.append(self._mask(matcher))
                allowed = np.flatnonzero(np.unpackbits(self._words.view(np.uint8), bitorder="little"))
                token_id = int(choose.choice(allowed))
                advances.append(_timed(lambda: _advance(matcher, token_id))[1])  # noqa: B023
        return {
            "compile": compiling,
            "first mask": statistics.median(first),
            "mask, p50": float(np.percentile(masks, 50)),
            "mask, p99": float(np.percentile(masks, 99)),
            "next token, p50": statistics.median(advances),
        }

    def _mask(self, matcher: Any) -> float:
        return _timed(lambda: matcher.unsafe_compute_mask_ptr(self._words.ctypes.data, self._words.nbytes))[1]


class _Engine:
    """The engine, with clocks on what its steps wait for."""

    def __init__(self, settings: Settings) -> None:
        path = str(models.pull(settings.model))
        self._engine = start_engine(
            EngineConfig(
                model_name=settings.model,
                model_path=path,
                threads=settings.threads,
                kv_pages=1024,
                prefix_cache=False,
            )
        )
        self._events: queue.Queue[Event] = queue.Queue()
        self._engine.listen(lambda events: [self._events.put(event) for event in events])
        self._waits: list[float] = []
        self._wait_mask = Matcher.wait_mask

        def timed(matcher: Matcher, timeout_s: float) -> bool:
            has_mask, us = _timed(lambda: self._wait_mask(matcher, timeout_s))
            self._waits.append(us)
            return has_mask

        Matcher.wait_mask = timed  # type: ignore[method-assign]
        self._forced: list[float] = []
        self._append_forced = ConstrainedRows.append_forced

        def timed_forced(rows: ConstrainedRows, sequences: Any) -> None:
            self._forced.append(_timed(lambda: self._append_forced(rows, sequences))[1])

        ConstrainedRows.append_forced = timed_forced  # type: ignore[method-assign]

    def close(self) -> None:
        """Stop the engine, and take the clocks away."""
        Matcher.wait_mask = self._wait_mask  # type: ignore[method-assign]
        ConstrainedRows.append_forced = self._append_forced  # type: ignore[method-assign]
        self._engine.close()

    def round(self) -> Figures:
        """Generate without and with the constraint."""
        self._waits.clear()
        run_id, constraint_id = self._engine.new_id(), self._engine.new_id()
        self._engine.submit(
            [OpenRun(run_id), CompileConstraint(constraint_id, run_id, ConstraintKind.JSON_SCHEMA, SCHEMA)]
        )
        self._wait_for(Done, 1)
        free_ms = self._token_ms(run_id, None)
        self._forced.clear()
        figures = {
            "8 sequences, free": free_ms,
            "8 sequences, constrained": self._token_ms(run_id, constraint_id),
            "forced tokens of a step, p50": float(np.percentile(self._forced, 50)),
            "forced tokens of a step, p90": float(np.percentile(self._forced, 90)),
            "waited for a mask, p50": float(np.percentile(self._waits, 50)),
            "waited for a mask, p99": float(np.percentile(self._waits, 99)),
        }
        self._engine.submit([CloseRun(run_id)])
        return figures

    def _token_ms(self, run_id: int, constraint_id: int | None) -> float:
        """Milliseconds in which all sequences get a token, sampled or forced, prompts included."""
        commands: list[Any] = []
        for number in range(NUM_SEQUENCES):
            context_id = self._engine.new_id()
            commands += [CreateContext(context_id, run_id), AppendTokens(context_id, (10 + number, 20, 30))]
            sampling, stop = Sampling(seed=number), Stop(max_tokens=NUM_TOKENS, ignore_eos=True)
            commands.append(Generate(self._engine.new_id(), context_id, sampling, stop, constraint_id=constraint_id))
        _, us = _timed(lambda: (self._engine.submit(commands), self._wait_for(Finished, NUM_SEQUENCES)))
        self._engine.check_integrity()
        return us / 1000 / NUM_TOKENS

    def _wait_for(self, kind: type[Any], count: int) -> None:
        while count:
            count -= isinstance(self._events.get(), kind)


def _advance(matcher: Any, token_id: int) -> None:
    """Go on by a token, and by what is forced after it."""
    matcher.consume_token(token_id)
    if not matcher.is_stopped() and (forced := matcher.compute_ff_tokens()):
        matcher.consume_tokens(forced)


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What `action` gives, and its microseconds."""
    began = time.perf_counter()
    result = action()
    return result, (time.perf_counter() - began) * 1e6
