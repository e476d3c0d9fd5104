"""What it costs that a program decides before each token: steps from Python and from Wasm, against plain generation.

All measure the time from the first to the last token of all sequences, which are in the same batch. A program that
waits for half of a step before each answer shows that this is no time lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tartlet
from benchmarks.direct import SharedEngine
from benchmarks.fixtures import CREATE_CONTEXT, FILL, NEXT_STEP, NOW, OPEN_MODEL, START_STEPS, component, loop
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, in_turn, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 7
TOKENS = 64
SEQUENCES = (10, 40)


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
            yield row(
                rounds, "thinking", "ms/step", label=f"{name}: more for a step, Python that waits for half of one"
            )
    engine.close()


def _measure(host: OpenHost, num_sequences: int, settings: Settings) -> Rounds:
    num_tokens = settings.scaled(TOKENS, 4)
    python, wasm = host.load("stepper.py"), host.load(WASM)

    def in_python(way: str, think_s: float = 0.0) -> float:
        given = {"sequences": num_sequences, "tokens": num_tokens, "way": way, "think_s": think_s}
        return float(host.run(python, given)) * 1000 / num_tokens

    def measure_round(number: int) -> Figures:
        plain = in_python("plain")
        figures = in_turn(
            number,
            {
                "steps": lambda: in_python("steps"),
                "wasm": lambda: _in_wasm(host, wasm, num_sequences, num_tokens),
                "thinking": lambda: in_python("steps", plain / 2000),
            },
        )
        plain = (plain + in_python("plain")) / 2
        return {
            "plain": plain,
            "python": (figures["steps"] - plain) / num_sequences,
            "wasm": (figures["wasm"] - plain) / num_sequences,
            "thinking": figures["thinking"] - figures["steps"],
        }

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)


def _in_wasm(host: OpenHost, program: tartlet.Program, num_sequences: int, num_tokens: int) -> float:
    """Milliseconds per step of so many runs that begin together, from the first one's first to the last one's last."""

    async def all_runs() -> list[list[Any]]:
        runs = [await host.host.start(program, num_tokens) for _ in range(num_sequences)]
        return [await run.result() for run in runs]

    times = host.call(all_runs())
    return (max(end for _, end in times) - max(begin for begin, _ in times)) / 1e6 / num_tokens


_F32_ONE = "(f32.const 1)"
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
      (call $next_step (local.get $steps) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (f32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 256))
      (call $record (call $now))
      {
        loop('''
        (call $next_step (local.get $steps) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
          (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (f32.const 0)
          (i32.const 0) (i32.const 0) (i32.const 256))
        (if (i32.load8_u (i32.const 256)) (then unreachable))''')
    }
      (call $record (call $now))""",
    NOW,
    OPEN_MODEL,
    CREATE_CONTEXT,
    FILL,
    START_STEPS,
    NEXT_STEP,
)
"""Goes token by token through a text; records its clock, in ns, before the first token and after the last."""
