"""What a controller costs: one that does nothing, in Python and in Wasm, against plain generation of as many sequences.

What is on the critical path is the time between two forward passes, with a core that the model leaves to programs. The
whole time of a step is that of the run, without that of one with a single token, which has the start and the prefill.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

import tartlet
from benchmarks.controller_fixture import controller
from benchmarks.direct import SharedEngine
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, between, measure_rounds
from benchmarks.settings import Settings
from benchmarks.stopwatch import Gaps, gaps_between
from tartlet import compose
from tartlet_engine.fused_runner import FusedRunner

ROUNDS = 5
SEQUENCES = (10, 40)
TOKENS = {10: 64, 40: 32, 2: 4}
"""By how many sequences write so many each."""
PROMPT = "Once upon a time"

EMPTY = """
from tartlet_sdk import Branch, Controller

class Empty(Controller):
    def start(self, config, prompt):
        self.branches = config
    def step(self, sequence, info):
        branches, self.branches = self.branches, 1
        return [Branch()] * branches if branches > 1 else None
"""
PLAIN = """
import asyncio
from tartlet_sdk import Model, Sampler, ignore_eos, inferlet, max_tokens

@inferlet
async def main(prompt: str, branches: int, tokens: int) -> int:
    context = Model.default().context()
    context.fill(prompt)
    stop = max_tokens(tokens) | ignore_eos()
    forks = [context.fork() for _ in range(branches)]
    drafts = await asyncio.gather(*(fork.generate(Sampler.temperature(1.0), stop=stop) for fork in forks))
    return sum(len(draft.tokens) for draft in drafts)
"""


def measure(settings: Settings) -> Iterator[Row]:
    """Give what a step takes more than in plain generation, between the passes and in all."""
    threads = max(1, settings.threads - 1)
    engine = SharedEngine(compose.start_engine(settings.model, threads=threads, prefix_cache=False))
    with open_host(engine, spares=2) as host, gaps_between(FusedRunner, "forward") as gaps:
        for num_sequences in SEQUENCES if not settings.is_quick else (2,):
            rounds = _measure(host, gaps, num_sequences, settings)
            name = f"{num_sequences} sequences"
            yield row(rounds, "plain", "ms/step", label=f"{name}: plain generation")
            yield row(rounds, "plain, between", "ms/step", label=f"{name}: of that, between passes")
            more = f"{name}: more between passes for a sequence's step"
            yield row(rounds, "wasm, between", "ms/step", at_most(0.03), label=f"{more}, Wasm")
            yield row(rounds, "python, between", "ms/step", at_most(0.15), label=f"{more}, Python")
            yield row(rounds, "wasm", "ratio", label=f"{name}: a step with Wasm / plain")
            yield row(rounds, "python", "ratio", label=f"{name}: a step with Python / plain")
    engine.close()


def _measure(host: OpenHost, gaps: Gaps, num_sequences: int, settings: Settings) -> Rounds:
    num_tokens = TOKENS[num_sequences]

    async def load() -> list[tartlet.Program]:
        return [await host.host.load(source) for source in (PLAIN, EMPTY, controller())]

    plain, python, wasm = host.call(load())

    async def in_plain(tokens: int) -> float:
        run = await host.host.start(plain, {"prompt": PROMPT, "branches": num_sequences, "tokens": tokens})
        assert await run.result() == num_sequences * tokens
        return run.usage.wall_ms

    async def controlled(program: tartlet.Program, tokens: int) -> float:
        options: dict[str, Any] = {"max_tokens": tokens, "temperature": 1.0}
        run = await host.host.start_control(program, PROMPT, num_sequences, **options)
        sequences = (await run.result())["sequences"]
        assert len(sequences) == num_sequences
        return run.usage.wall_ms * tokens / max(each["tokens"] for each in sequences)

    between_ms: dict[str, float] = {}

    def per_step(name: str, whole: Callable[[int], Coroutine[Any, Any, float]]) -> float:
        gaps.take()
        longer = host.call(whole(num_tokens))
        between_ms[name] = statistics.median(gaps.take()) * 1000
        return (longer - host.call(whole(1))) / (num_tokens - 1)

    def measure_round(_: int) -> Figures:
        ways = {
            "python": lambda: per_step("python", partial(controlled, python)),
            "wasm": lambda: per_step("wasm", partial(controlled, wasm)),
        }
        base, more = between(lambda: per_step("plain", in_plain), ways)
        return {
            "plain": base,
            "plain, between": between_ms["plain"],
            **{name: 1 + ms / base for name, ms in more.items()},
            **{f"{name}, between": (between_ms[name] - between_ms["plain"]) / num_sequences for name in ways},
        }

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)
