"""What forks save: best of 8 after a prompt of 512 tokens, in forks of one context against separate contexts."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import tartlet
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 5
NUM_FORKS = 8
PROMPT_LEN = 512  # tokens


def measure(settings: Settings) -> Iterator[Row]:
    """Give seconds, and how many tokens of prompt were computed."""
    engine = compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False)
    with open_host(engine, spares=2) as host:
        program = host.load("best_of.py")
        rounds = measure_rounds(
            lambda number: _round(number, host, program, settings), settings.scaled(ROUNDS, 1), settings
        )
    engine.close()
    yield row(rounds, "forked, prefill", "tokens", at_most(PROMPT_LEN))
    yield row(rounds, "separate, prefill", "tokens")
    yield row(rounds, "forked", "s")
    yield row(rounds, "separate", "s")
    yield row(rounds, "forked / separate", "ratio")


def _round(number: int, host: OpenHost, program: tartlet.Program, settings: Settings) -> Figures:
    model = host.host.models[0]
    # Other tokens each time: nothing may be in any cache.
    prompt = random.Random(number).choices(range(model.vocabulary_size), k=PROMPT_LEN)
    num_tokens = settings.scaled(32, 4)
    figures: dict[str, float] = {}
    for name, fork in (("forked", True), ("separate", False)):
        computed = host.host.stats().engine.prefill_tokens
        began = time.monotonic()
        given = {"prompt": prompt, "n": NUM_FORKS, "max_tokens": num_tokens, "fork": fork}
        assert host.run(program, given) == NUM_FORKS * num_tokens
        figures[name] = time.monotonic() - began
        figures[f"{name}, prefill"] = host.host.stats().engine.prefill_tokens - computed
    return {**figures, "forked / separate": figures["forked"] / figures["separate"]}
