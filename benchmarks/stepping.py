"""What it costs that a program decides before each token: steps from Python and from Wasm, against plain generation.

What is on the critical path is the time between two forward passes: it does not drift with the machine's speed as the
passes do. The whole time of a step is measured, too, each way between two of plain generation. A program that waits for
half of a step before each answer shows that this is no time lost. With a model thread for each core, programs take the
time that they compute from the model; with one less they have a core of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import tartlet
from benchmarks.direct import SharedEngine
from benchmarks.fixtures import CREATE_CONTEXT, FILL, NEXT_STEP, NOW, OPEN_MODEL, START_STEPS, component, loop
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, Rounds, between, in_turn, measure_rounds
from benchmarks.settings import Settings
from benchmarks.stopwatch import Gaps, gaps_between
from tartlet import compose
from tartlet_engine.fused_runner import FusedRunner

ROUNDS = 5
LATE_S, NUM_LATE = 0.05, 4
"""How late answers come, and of how many sequences, beside plain generation."""
SEQUENCES = (10, 40)
TOKENS = {10: 64, 40: 32, 2: 4}
"""By how many sequences write so many each."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give what a step takes more than in plain generation, between the passes and in all."""
    for threads in dict.fromkeys((max(1, settings.threads - 1), settings.threads)):
        engine = SharedEngine(compose.start_engine(settings.model, threads=threads, prefix_cache=False))
        with open_host(engine, spares=2) as host, gaps_between(FusedRunner, "forward") as gaps:
            for num_sequences in SEQUENCES if not settings.is_quick else (2,):
                rounds = _measure(host, gaps, num_sequences, settings)
                yield from _rows(rounds, f"{num_sequences} sequences, {_threads(threads)}")
            yield row(
                _measure_late(host, settings),
                "late / prompt",
                "ratio",
                at_most(1.02),
                label=f"4 sequences, {_threads(threads)}: a step beside {NUM_LATE} late answers / beside prompt ones",
            )
        engine.close()


def _rows(rounds: Rounds, name: str) -> Iterator[Row]:
    yield row(rounds, "plain", "ms/step", label=f"{name}: plain generation")
    yield row(rounds, "plain, between", "ms/step", label=f"{name}: of that, between passes")
    more = f"{name}: more between passes for a sequence's step"
    yield row(rounds, "wasm, between", "ms/step", at_most(0.03), label=f"{more}, Wasm")
    yield row(rounds, "python, between", "ms/step", at_most(0.15), label=f"{more}, Python")
    for way, what in (("wasm", "Wasm"), ("python", "Python"), ("thinking", "Python that waits for half of one")):
        yield row(rounds, way, "ratio", label=f"{name}: a step with {what} / plain")


def _threads(count: int) -> str:
    return f"{count} model thread{'s' if count > 1 else ''}"


def _measure_late(host: OpenHost, settings: Settings) -> Rounds:
    """What others' late answers do to plain generation: whoever is late is in fewer batches."""
    program = host.load("stepper.py")

    def beside(think_s: float) -> float:
        given = {"sequences": 4, "tokens": settings.scaled(64, 4), "way": "plain", "others": NUM_LATE}
        return float(host.run(program, {**given, "think_s": think_s}))

    def measure_round(number: int) -> Figures:
        figures = in_turn(number, {"late": lambda: beside(LATE_S), "prompt": lambda: beside(0.0)})
        return {"late / prompt": figures["late"] / figures["prompt"]}

    return measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)


def _measure(host: OpenHost, gaps: Gaps, num_sequences: int, settings: Settings) -> Rounds:
    num_tokens = TOKENS[num_sequences]
    python, wasm = host.load("stepper.py"), host.load(WASM)
    between_ms: dict[str, float] = {}

    def timed(name: str, way: Callable[[], float]) -> float:
        """What `way` gives; notes the time between its passes."""
        gaps.take()
        figure = way()
        between_ms[name] = statistics.median(gaps.take()) * 1000
        return figure

    def in_python(name: str, think_s: float = 0.0) -> float:
        given = {"sequences": num_sequences, "tokens": num_tokens, "way": name, "think_s": think_s}
        return timed(name, lambda: float(host.run(python, given)) * 1000 / num_tokens)

    def measure_round(_: int) -> Figures:
        half_step_s = in_python("plain") / 2000
        ways = {
            "wasm": lambda: timed("wasm", lambda: _in_wasm(host, wasm, num_sequences, num_tokens)),
            "thinking": lambda: in_python("steps", half_step_s),
            "python": lambda: in_python("steps"),
        }
        base, more = between(lambda: in_python("plain"), ways)
        return {
            "plain": base,
            "plain, between": between_ms["plain"],
            "wasm, between": (between_ms["wasm"] - between_ms["plain"]) / num_sequences,
            "python, between": (between_ms["steps"] - between_ms["plain"]) / num_sequences,
            **{name: 1 + ms / base for name, ms in more.items()},
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
