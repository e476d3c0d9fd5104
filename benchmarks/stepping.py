"""What it costs that a program decides before each token: steps from Python and from Wasm, against plain generation.

All measure the time from the first to the last token of sequences that are in the same batch; each way is measured
between two of plain generation, because a machine's speed drifts. A program that waits for half of a step before each
answer shows that this is no time lost. With a model thread for each core, programs take the time that they compute from
the model; with one less they have a core of their own, and what is left is what a step waits for.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import tartlet
from benchmarks.direct import SharedEngine
from benchmarks.fixtures import CREATE_CONTEXT, FILL, NEXT_STEP, NOW, OPEN_MODEL, START_STEPS, component, loop
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, between, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 5
SEQUENCES = (10, 40)
TOKENS = {10: 64, 40: 32, 2: 4}
"""By how many sequences write so many each."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give the milliseconds that a step of one sequence takes more than in plain generation."""
    for threads in dict.fromkeys((max(1, settings.threads - 1), settings.threads)):
        engine = SharedEngine(compose.start_engine(settings.model, threads=threads, prefix_cache=False))
        with open_host(engine, spares=2) as host:
            for num_sequences in SEQUENCES if not settings.is_quick else (2,):
                yield from _rows(_measure(host, num_sequences, settings), threads, num_sequences)
        engine.close()


def _rows(rounds: Rounds, threads: int, num_sequences: int) -> Iterator[Row]:
    name = f"{num_sequences} sequences, {threads} model thread{'s' if threads > 1 else ''}"
    yield row(rounds, "plain", "ms/step", label=f"{name}: plain generation")
    yield row(rounds, "wasm", "ms/step", at_most(0.03), label=f"{name}: more for a sequence's step, Wasm")
    yield row(rounds, "python", "ms/step", at_most(0.15), label=f"{name}: more for a sequence's step, Python")
    yield row(rounds, "thinking", "ms/step", label=f"{name}: more for a step, Python that waits for half of one")


def _measure(host: OpenHost, num_sequences: int, settings: Settings) -> Rounds:
    num_tokens = TOKENS[num_sequences]
    python, wasm = host.load("stepper.py"), host.load(WASM)

    def in_python(way: str, think_s: float = 0.0) -> float:
        given = {"sequences": num_sequences, "tokens": num_tokens, "way": way, "think_s": think_s}
        return float(host.run(python, given)) * 1000 / num_tokens

    def measure_round(_: int) -> Figures:
        def plain() -> float:
            return in_python("plain")

        half_step_s = plain() / 2000
        ways = {
            "wasm": lambda: _in_wasm(host, wasm, num_sequences, num_tokens),
            "python": lambda: in_python("steps"),
            "thinking": lambda: in_python("steps", half_step_s),
        }
        base, more = between(plain, ways)
        return {
            "plain": base,
            "python": more["python"] / num_sequences,
            "wasm": more["wasm"] / num_sequences,
            "thinking": more["thinking"] - more["python"],
        }

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)


def _in_wasm(host: OpenHost, program: tartlet.Program, num_sequences: int, num_tokens: int) -> float:
    """Milliseconds per step of so many runs that begin together: the mean of what each takes from first to last."""

    async def all_runs() -> list[list[Any]]:
        runs = [await host.host.start(program, num_tokens) for _ in range(num_sequences)]
        return [await run.result() for run in runs]

    times = host.call(all_runs())
    return statistics.fmean(end - begin for begin, end in times) / 1e6 / num_tokens


JOINING = 8
"""Tokens of each run before its clock is looked at: runs that begin one after the other are in one batch by then."""

_F32_ONE = "(f32.const 1)"
_STEP = """(call $next_step (local.get $steps) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (f32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 256))"""
_END = "(if (i32.load8_u (i32.const 256)) (then unreachable))"
WASM = component(
    f"""
      (call $open_model (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 16))
      (local.set $model (i32.load (i32.const 20)))
      (call $create_context (local.get $model) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 16))
      (local.set $context (i32.load (i32.const 20)))
      (i64.store (i32.const 2048) (i64.const 0x20616573206e6120)) ;; " an sea "
      (call $fill (local.get $context) (i32.const 2048) (i32.const 8) (i32.const 16))
      ;; What `start` takes lies at 2112, all 0 but what is set here.
      (i32.store (i32.const 2112) (local.get $context))
      (f32.store (i32.const 2128) {_F32_ONE}) ;; top-p
      (f32.store (i32.const 2136) {_F32_ONE}) ;; repetition penalty
      (i32.store8 (i32.const 2200) (i32.const 1)) ;; eos is ignored
      (call $start_steps (i32.const 2112) (i32.const 16))
      (local.set $steps (i32.load (i32.const 20)))
      {_STEP * (1 + JOINING)}
      (call $record (call $now))
      {loop(_STEP + _END)}
      (call $record (call $now))""",
    NOW,
    OPEN_MODEL,
    CREATE_CONTEXT,
    FILL,
    START_STEPS,
    NEXT_STEP,
)
"""Goes token by token through a text; records its clock, in ns, before the tokens asked for and after the last."""
