"""JSON extraction: what it spares that text which the schema leaves no choice about is appended, not sampled."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet_engine.api import (
    AppendTokens,
    CloseRun,
    CompileConstraint,
    ConstraintKind,
    CreateContext,
    Done,
    Event,
    Finished,
    Generate,
    OpenRun,
    Sampling,
    Stop,
)
from tartlet_engine.constraints.follower import GrammarFollower

ROUNDS = 5
MOST_TOKENS = 256
TEXTS = (
    "Ann Lee, 34, of Oslo, is an engineer and speaks Norwegian and English.",
    "Our reader Tom Sato (61) from Kyoto, a retired teacher, wrote to us in Japanese.",
    "The nurse Eva Braga is 29 years old, lives in Porto, and speaks Portuguese.",
    "Born in Lima 45 years ago, Luis Rojas works as a cook. Spanish is his only language.",
)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "full_name": {"type": "string", "maxLength": 30},
            "age_in_years": {"type": "integer", "minimum": 0, "maximum": 120},
            "occupation": {"enum": ["engineer", "teacher", "nurse", "cook", "other"]},
            "place_of_residence": {"type": "string", "maxLength": 20},
            "spoken_languages": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
        },
        "required": ["full_name", "age_in_years", "occupation", "place_of_residence", "spoken_languages"],
        "additionalProperties": False,
    }
)


def measure(settings: Settings) -> Iterator[Row]:
    """Give tokens sampled and time, with forced tokens and without, for one text after the other and all at once."""
    extraction = _Extraction(settings)
    for at_once in (1, len(TEXTS)):
        rounds = measure_rounds(lambda _, n=at_once: extraction.round(n), settings.scaled(ROUNDS, 1), settings)  # type: ignore[misc]
        name = "one at a time" if at_once == 1 else f"{at_once} at once"
        yield row(rounds, "tokens", "tokens", label=f"{name}: tokens")
        yield row(rounds, "sampled", "tokens", label=f"{name}: of these, sampled")
        yield row(rounds, "sampled, unforced", "tokens", label=f"{name}: sampled if nothing is forced")
        yield row(rounds, "time", "s", label=f"{name}: time")
        yield row(rounds, "time / unforced", "ratio", at_most(1), label=f"{name}: time / time if nothing is forced")
    extraction.close()


class _Extraction:
    """Extracts all texts on an engine of its own."""

    def __init__(self, settings: Settings) -> None:
        self._engine = compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False)
        self._events: queue.Queue[Event] = queue.Queue()
        self._engine.listen(lambda events: [self._events.put(event) for event in events])
        self._most_tokens = settings.scaled(MOST_TOKENS, 16)

    def close(self) -> None:
        """Stop the engine."""
        self._engine.close()

    def round(self, at_once: int) -> Figures:
        """Extract with and without forced tokens."""
        num_tokens, num_forced, seconds = self._extract(at_once)
        with _nothing_is_forced():
            num_unforced, none, unforced_s = self._extract(at_once)
        assert none == 0
        return {
            "tokens": num_tokens,
            "sampled": num_tokens - num_forced,
            "sampled, unforced": num_unforced,
            "time": seconds,
            "time / unforced": seconds / unforced_s,
        }

    def _extract(self, at_once: int) -> tuple[int, int, float]:
        """Tokens of all texts, those of them that were forced, and seconds, prompts included."""
        run_id, constraint_id = self._engine.new_id(), self._engine.new_id()
        compiling = CompileConstraint(constraint_id, run_id, ConstraintKind.JSON_SCHEMA, SCHEMA)
        self._engine.submit([OpenRun(run_id), compiling])
        self._wait_for(Done)
        began, finished = time.monotonic(), []
        for first in range(0, len(TEXTS), at_once):
            texts = TEXTS[first : first + at_once]
            self._engine.submit([command for text in texts for command in self._commands(run_id, text, constraint_id)])
            finished += [self._wait_for(Finished) for _ in texts]
        seconds = time.monotonic() - began
        self._engine.submit([CloseRun(run_id)])
        self._engine.check_integrity()
        usages = [event.usage for event in finished]
        return sum(u.generated_tokens for u in usages), sum(u.forced_tokens for u in usages), seconds

    def _commands(self, run_id: int, text: str, constraint_id: int) -> list[Any]:
        model = self._engine.text(next(iter(self._engine.models)))
        prompt = model.chat_message((), "user", f"Extract what is said of the person, as JSON.\n\n{text}")
        prompt += model.chat_cue(("user",))
        context_id, stop = self._engine.new_id(), Stop(max_tokens=self._most_tokens)
        sampling = Sampling(seed=0, temperature=0.0)
        return [
            CreateContext(context_id, run_id),
            AppendTokens(context_id, tuple(prompt)),
            Generate(self._engine.new_id(), context_id, sampling, stop, constraint_id=constraint_id),
        ]

    def _wait_for(self, kind: type[Any]) -> Any:
        while True:
            event = self._events.get()
            if isinstance(event, kind):
                return event


@contextmanager
def _nothing_is_forced() -> Iterator[None]:
    """Let constraints only mask, while the block lasts."""
    original = GrammarFollower.forced
    GrammarFollower.forced = lambda self: []  # type: ignore[method-assign]
    try:
        yield
    finally:
        GrammarFollower.forced = original  # type: ignore[method-assign]
