"""What the prefix cache saves: time to the first token of a prompt of 512 tokens, the first time and again."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 9
PROMPT_LEN = 512  # tokens
TAIL_LEN = 32  # tokens of another question after the same beginning


def measure(settings: Settings) -> Iterator[Row]:
    """Give times to the first token, and how many tokens of prompt were computed for them."""
    engine = SharedEngine(compose.start_engine(settings.model, threads=settings.threads))
    caller = DirectCaller(engine)
    numbers = random.Random(1)
    rounds = measure_rounds(lambda _: _round(numbers, engine, caller), settings.scaled(ROUNDS, 1), settings)
    engine.close()
    for name in ("first", "again", "other question"):
        yield row(rounds, f"{name}: to the first token", "s")
    yield row(rounds, "first: computed", "tokens")
    yield row(rounds, "again: computed", "tokens", at_most(1))
    yield row(rounds, "other question: computed", "tokens", at_most(TAIL_LEN))
    yield row(rounds, "again / first", "ratio", at_most(0.1))
    yield row(rounds, "other question / first", "ratio", at_most(0.2))


def _round(numbers: random.Random, engine: SharedEngine, caller: DirectCaller) -> Figures:
    (model,) = engine.models.values()
    # Other tokens each time: only what this round has computed is found.
    prompt = numbers.choices(range(model.vocabulary_size), k=PROMPT_LEN)
    tail = numbers.choices(range(model.vocabulary_size), k=TAIL_LEN)
    figures: dict[str, float] = {}
    times: dict[str, float] = {}
    for name, tokens in (("first", prompt), ("again", prompt), ("other question", prompt + tail)):
        computed = engine.stats().prefill_tokens
        times[name] = caller.generate([tokens], 1).first_token_seconds
        engine.check_integrity()  # after the step that counts it
        figures[f"{name}: computed"] = engine.stats().prefill_tokens - computed
        figures[f"{name}: to the first token"] = times[name]
    return {
        **figures,
        "again / first": times["again"] / times["first"],
        "other question / first": times["other question"] / times["first"],
    }
