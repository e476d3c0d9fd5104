"""How fast the engine computes, against transformers alone with the same weights, dtype and threads.

The engine is asked directly, without a host. `loop` is the barest loop over transformers' modules and cache, `generate`
its own; both get what suits them best: all prompts have the same length, and nothing is sampled.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.report import Row, row
from benchmarks.rounds import Figures, in_turn, measure_rounds
from benchmarks.settings import Settings
from benchmarks.stopwatch import stopwatch
from benchmarks.transformers_loop import TransformersLoop
from tartlet import compose, models
from tartlet_engine.fused_runner import FusedRunner
from tartlet_engine.model_runner import TransformersRunner
from tartlet_engine.step import Stepper

DTYPES = ("float32", "bfloat16")
PREFILL_LEN = 512
PROMPT_LEN = 32  # before decoding


@dataclass(frozen=True, slots=True)
class Load:
    """What is decoded at once, and how often it is measured."""

    num_sequences: int
    num_tokens: int
    rounds: int


LOADS = (Load(1, 48, 7), Load(8, 24, 5), Load(32, 16, 5))
QUICK_LOADS = (Load(1, 4, 1), Load(2, 4, 1))


def measure(settings: Settings) -> Iterator[Row]:
    """Give tokens per second, and how many times those of transformers they are."""
    folder = str(models.local_path(settings.model))
    for dtype in DTYPES:
        engine = SharedEngine(
            compose.start_engine(settings.model, dtype=dtype, threads=settings.threads, prefix_cache=False)
        )
        contest = _Contest(engine, DirectCaller(engine), TransformersLoop(folder, dtype, settings.threads))
        yield from _measure_prefill(contest, dtype, settings)
        for load in QUICK_LOADS if settings.is_quick else LOADS:
            yield from _measure_decode(contest, dtype, load, settings)
        engine.close()


def _measure_prefill(contest: _Contest, dtype: str, settings: Settings) -> Iterator[Row]:
    length = settings.scaled(PREFILL_LEN, 24)
    rounds = measure_rounds(lambda number: contest.prefill(number, length), settings.scaled(7, 1), settings)
    label = f"{dtype}, prefill of {length}"
    yield row(rounds, "Tartlet", "tokens/s", label=f"{label}: Tartlet on {contest.backend}")
    yield row(rounds, "loop", "tokens/s", label=f"{label}: transformers")
    yield row(rounds, "Tartlet / loop", "ratio", label=f"{label}: Tartlet / transformers")


def _measure_decode(contest: _Contest, dtype: str, load: Load, settings: Settings) -> Iterator[Row]:
    rounds = measure_rounds(lambda number: contest.decode(number, load), load.rounds, settings)
    label = f"{dtype}, decode of {load.num_sequences}"
    yield row(rounds, "Tartlet", "tokens/s", label=f"{label}: Tartlet on {contest.backend}")
    yield row(rounds, "loop", "tokens/s", label=f"{label}: transformers, loop")
    yield row(rounds, "generate", "tokens/s", label=f"{label}: transformers, generate")
    yield row(rounds, "Tartlet / loop", "ratio", label=f"{label}: Tartlet / loop")
    yield row(rounds, "outside", "%", label=f"{label}: step outside forward")


@dataclass(frozen=True, slots=True)
class _Contest:
    """The same work for both."""

    engine: SharedEngine
    caller: DirectCaller
    transformers: TransformersLoop

    @property
    def backend(self) -> str:
        """What computes Tartlet's part."""
        [model] = self.engine.models.values()
        return model.backend

    def prefill(self, number: int, length: int) -> Figures:
        [prompt] = self._prompts(number, 1, length)
        seconds = in_turn(
            number,
            {
                "Tartlet": lambda: self.caller.generate([prompt], 1).first_token_seconds,
                "loop": lambda: self.transformers.prefill_seconds(prompt),
            },
        )
        return _with_ratio({name: length / value for name, value in seconds.items()})

    def decode(self, number: int, load: Load) -> Figures:
        prompts = self._prompts(number, load.num_sequences, PROMPT_LEN)
        with (
            stopwatch(Stepper, "step") as steps,
            stopwatch(FusedRunner, "forward") as fused,
            stopwatch(TransformersRunner, "forward") as plain,
        ):
            rates = in_turn(
                number,
                {
                    "Tartlet": lambda: self.caller.generate(prompts, load.num_tokens).decode_rate,
                    "loop": lambda: self.transformers.decode_rate(prompts, load.num_tokens),
                    "generate": lambda: self.transformers.generate_rate(prompts, load.num_tokens),
                },
            )
        return {**_with_ratio(rates), "outside": 100 * (1 - (fused.seconds + plain.seconds) / steps.seconds)}

    def _prompts(self, number: int, num_prompts: int, length: int) -> list[list[int]]:
        """Random tokens, others in each round."""
        [model] = self.engine.models.values()
        choose = random.Random(number).choices
        return [choose(range(model.vocabulary_size), k=length) for _ in range(num_prompts)]


def _with_ratio(rates: Mapping[str, float]) -> Figures:
    return {**rates, "Tartlet / loop": rates["Tartlet"] / rates["loop"]}
