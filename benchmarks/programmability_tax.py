"""What it costs that a program asks for the tokens: a completion by an inferlet against the engine asked directly.

All begin with a text and end when the caller has all tokens; the inferlet's time includes the start of its run. The
tiny model, whose steps take next to no time, shows the cost as such.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import tartlet
from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 15
REAL_TOKENS = 128  # of a completion; what the start of its run costs is spread over them
TINY_TOKENS = 256
CHUNK_INTERVAL_S = 0.03  # what the SDK does unless told otherwise
MAX_DRIFT = 1.03
"""What may lie between two measurements of the direct way: virtual machines change their speed every few seconds."""
MAX_TRIES = 5
PROMPT = "The three primary colours are"


def measure(settings: Settings) -> Iterator[Row]:
    """Give milliseconds per token, and what an inferlet's are more."""
    real = _measure_model(settings.model, settings.scaled(REAL_TOKENS, 8), settings)
    yield row(real, "direct", "ms/token", label=f"{settings.model}: direct")
    yield row(real, "whole", "ms/token", label=f"{settings.model}: inferlet, awaited whole")
    yield row(real, "streamed", "ms/token", label=f"{settings.model}: inferlet, streamed")
    yield row(real, "each token", "ms/token", label=f"{settings.model}: inferlet, streamed without interval")
    yield row(real, "tax whole", "%", at_most(1.0), label="tax, awaited whole")
    yield row(real, "tax streamed", "%", at_most(3.0), label="tax, streamed")
    yield row(real, "tax each token", "%", label="tax, streamed without interval")
    yield row(real, "drift", "%", label="drift of the direct way within a round")
    tiny = _measure_model("tiny", settings.scaled(TINY_TOKENS, 8), settings)
    yield row(tiny, "direct", "ms/token", label="tiny model: direct")
    yield row(tiny, "added whole", "us/token", label="tiny model: added, awaited whole")
    yield row(tiny, "added streamed", "us/token", label="tiny model: added, streamed")
    yield row(tiny, "added each token", "us/token", label="tiny model: added, streamed without interval")


@dataclass(frozen=True, slots=True)
class _Contest:
    """The same completion in three ways; each method gives the milliseconds per token of one."""

    host: OpenHost
    program: tartlet.Program
    engine: SharedEngine
    caller: DirectCaller
    num_tokens: int

    def direct(self) -> float:
        began = time.monotonic()
        text = self.engine.text(next(iter(self.engine.models)))
        self.caller.generate([text.encode(PROMPT)], self.num_tokens)
        return (time.monotonic() - began) * 1000 / self.num_tokens

    def inferlet(self, chunk_interval: float | None) -> float:
        given = {"prompt": PROMPT, "max_tokens": self.num_tokens, "chunk_interval": chunk_interval}
        began = time.monotonic()
        assert self.host.run(self.program, given) == self.num_tokens
        return (time.monotonic() - began) * 1000 / self.num_tokens

    def round(self, number: int) -> Figures:
        """Measure all, the direct way before and after the others: again if the machine's speed changed meanwhile."""
        for _ in range(MAX_TRIES):
            before = self.direct()
            figures = in_turn(
                number,
                {
                    "whole": lambda: self.inferlet(None),
                    "streamed": lambda: self.inferlet(CHUNK_INTERVAL_S),
                    "each token": lambda: self.inferlet(0.0),
                },
            )
            after = self.direct()
            if max(before, after) < MAX_DRIFT * min(before, after):
                break
        direct = (before + after) / 2
        more = {name: value - direct for name, value in figures.items()}
        taxes = {f"tax {name}": 100 * value / direct for name, value in more.items()}
        added = {f"added {name}": 1000 * value for name, value in more.items()}
        drift = 100 * abs(after - before) / direct
        return {**figures, "direct": direct, "drift": drift, **taxes, **added}


def _measure_model(model: str, num_tokens: int, settings: Settings) -> Rounds:
    engine = SharedEngine(compose.start_engine(model, threads=settings.threads, prefix_cache=False))
    with open_host(engine, spares=2) as host:
        contest = _Contest(host, host.load("completion.py"), engine, DirectCaller(engine), num_tokens)
        rounds = measure_rounds(contest.round, settings.scaled(ROUNDS, 1), settings)
    engine.close()
    return rounds
