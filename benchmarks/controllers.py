"""What a controller costs: one that does nothing, in Python and in Wasm, against plain generation of as many sequences.

Each measures the whole run, and takes off one with a single token, which has the start and the prefill.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tartlet
from benchmarks.controller_fixture import controller
from benchmarks.direct import SharedEngine
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 7
TOKENS = 64
SEQUENCES = (10, 40)
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
    """Give the milliseconds that a step of one sequence takes more than in plain generation."""
    engine = SharedEngine(compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False))
    with open_host(engine, spares=2) as host:
        for num_sequences in SEQUENCES if not settings.is_quick else (2,):
            rounds = _measure(host, num_sequences, settings)
            name = f"{num_sequences} sequences"
            yield row(rounds, "plain", "ms/step", label=f"{name}: plain generation")
            yield row(rounds, "wasm", "ms/step", at_most(0.03), label=f"{name}: more for a sequence's step, Wasm")
            yield row(rounds, "python", "ms/step", at_most(0.15), label=f"{name}: more for a sequence's step, Python")
    engine.close()


def _measure(host: OpenHost, num_sequences: int, settings: Settings) -> Rounds:
    num_tokens = settings.scaled(TOKENS, 4)

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

    def measure_round(number: int) -> Figures:
        ways = {
            "plain": lambda: host.call(in_plain(num_tokens)) - host.call(in_plain(1)),
            "python": lambda: host.call(controlled(python, num_tokens)) - host.call(controlled(python, 1)),
            "wasm": lambda: host.call(controlled(wasm, num_tokens)) - host.call(controlled(wasm, 1)),
        }
        figures = {name: time_ms / (num_tokens - 1) for name, time_ms in in_turn(number, ways).items()}
        return {
            "plain": figures["plain"],
            "python": (figures["python"] - figures["plain"]) / num_sequences,
            "wasm": (figures["wasm"] - figures["plain"]) / num_sequences,
        }

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)
