"""What a controller costs: one that does nothing, in Python and in Wasm, against plain generation of as many sequences.

Each measures the whole run, and takes off one with a single token, which has the start and the prefill.
"""

from __future__ import annotations

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
from tartlet import compose

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

    def per_step(whole: Callable[[int], Coroutine[Any, Any, float]]) -> float:
        return (host.call(whole(num_tokens)) - host.call(whole(1))) / (num_tokens - 1)

    def measure_round(_: int) -> Figures:
        ways = {
            "python": lambda: per_step(partial(controlled, python)),
            "wasm": lambda: per_step(partial(controlled, wasm)),
        }
        base, more = between(lambda: per_step(in_plain), ways)
        return {"plain": base, **{name: ms / num_sequences for name, ms in more.items()}}

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)
