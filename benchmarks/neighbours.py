"""What other busy processes take from the engine: decode beside them against decode alone.

The model has as many threads as cores. A fair system gives all threads equal parts, so beside k busy processes the
model's n threads should have n / (n + k) of the machine; a barrier that waits for a thread without a core loses more.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.report import Row, at_least, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 5
PROMPT_LEN = 32
LOADS = ((1, 64), (8, 32))  # sequences, tokens of each
NUM_BUSY = (1, 2)
TOLERANCE = 0.9
"""Of the fair part: the scheduler's slices are longer than a step."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give the rate alone, and what is left of it beside others."""
    engine = SharedEngine(
        compose.start_engine(settings.model, dtype="bfloat16", threads=settings.threads, prefix_cache=False)
    )
    caller = DirectCaller(engine)
    [model] = engine.models.values()

    def rate(number: int, num_sequences: int, num_tokens: int) -> float:
        choose = random.Random(number).choices
        prompts = [choose(range(model.vocabulary_size), k=PROMPT_LEN) for _ in range(num_sequences)]
        return caller.generate(prompts, num_tokens).decode_rate

    for num_sequences, full in LOADS:
        num_tokens = settings.scaled(full, 4)

        def compare(number: int, num_sequences: int = num_sequences, num_tokens: int = num_tokens) -> Figures:
            figures = {"alone": rate(number, num_sequences, num_tokens)}
            for count in NUM_BUSY:
                with _busy_processes(count):
                    figures[f"beside {count}"] = rate(number, num_sequences, num_tokens) / figures["alone"]
            return figures

        rounds = measure_rounds(compare, settings.scaled(ROUNDS, 1), Settings(settings.is_quick, patience=0))
        yield row(rounds, "alone", "tokens/s", label=f"decode of {num_sequences}, alone")
        for count in NUM_BUSY:
            fair = settings.threads / (settings.threads + count)
            label = f"decode of {num_sequences}, beside {count} busy: part of that alone (fair: {fair:.2f})"
            yield row(rounds, f"beside {count}", "ratio", at_least(TOLERANCE * fair), label=label)
    engine.close()


@contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3)  # until they are
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
