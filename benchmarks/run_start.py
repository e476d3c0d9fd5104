"""How soon a program runs once it has been asked for, and how many can be started in a second."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator

import tartlet
from benchmarks.fixtures import NOW, component
from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet.testing import FakeEngine

ROUNDS = 9
SPARES = 2
IN_FLIGHT = 2  # runs, while launches are counted: one that runs, and the next

_SPARE_SECONDS = 5.0
_TELL_TIME = component("(call $record (call $now))", NOW)


def measure(settings: Settings) -> Iterator[Row]:
    """Give milliseconds from `Host.start` to the program's first instruction, and launches per second."""
    engine = FakeEngine()
    rounds = settings.scaled(ROUNDS, 1)
    with open_host(engine) as host:
        wasm, hello = host.load(_TELL_TIME), host.load("hello.py")
        on_demand = measure_rounds(lambda _: _on_demand(host, wasm, hello, settings), rounds, settings)
    yield row(on_demand, "Wasm, first instruction", "ms", at_most(0.3))
    yield row(on_demand, "Python hello on demand, first line", "ms", at_most(2.5))
    yield row(on_demand, "Python hello on demand, result", "ms")
    yield row(on_demand, "launches of Python hello, on demand", "1/s", at_least(400))
    yield row(on_demand, "CPU time of a launch of Python hello", "ms")
    yield row(on_demand, "launches of Wasm", "1/s")
    with open_host(engine, spares=SPARES) as host:
        hello, thirty = host.load("hello.py"), host.load("thirty_lines.py")
        spare = measure_rounds(lambda _: _with_spare(host, hello, thirty, settings), rounds, settings)
    yield row(spare, "Python hello, spare, first line", "ms", at_most(1.0))
    yield row(spare, "Python hello, spare, result", "ms")
    yield row(spare, "Python 30 lines, spare, first line", "ms", at_most(1.5))
    yield row(spare, "Python 30 lines, spare, result", "ms")
    engine.close()


def _on_demand(host: OpenHost, wasm: tartlet.Program, hello: tartlet.Program, settings: Settings) -> Figures:
    starts = settings.scaled(50, 2)
    wasm_first, _ = _median_start(host, wasm, starts)
    first, end = _median_start(host, hello, starts)
    launches = settings.scaled(300, 4)
    rate, cpu_ms = host.call(_launch(host.host, hello, launches))
    wasm_rate, _ = host.call(_launch(host.host, wasm, 4 * launches))
    return {
        "Wasm, first instruction": wasm_first,
        "Python hello on demand, first line": first,
        "Python hello on demand, result": end,
        "launches of Python hello, on demand": rate,
        "CPU time of a launch of Python hello": cpu_ms,
        "launches of Wasm": wasm_rate,
    }


def _with_spare(host: OpenHost, hello: tartlet.Program, thirty: tartlet.Program, settings: Settings) -> Figures:
    starts = settings.scaled(30, 2)
    first, end = _median_start(host, hello, starts)
    thirty_first, thirty_end = _median_start(host, thirty, starts)
    return {
        "Python hello, spare, first line": first,
        "Python hello, spare, result": end,
        "Python 30 lines, spare, first line": thirty_first,
        "Python 30 lines, spare, result": thirty_end,
    }


def _median_start(host: OpenHost, program: tartlet.Program, times: int) -> tuple[float, float]:
    """Milliseconds from the start to the program's first line, and to its result; medians."""
    samples = [host.call(_start(host.host, program)) for _ in range(times)]
    firsts, ends = zip(*samples, strict=True)
    return statistics.median(firsts), statistics.median(ends)


async def _start(host: tartlet.Host, program: tartlet.Program) -> tuple[float, float]:
    await _wait_for_spares(host)
    began_ns = time.monotonic_ns()
    result = await host.run(program, None if program.kind == "source" else 0)
    ended_ns = time.monotonic_ns()
    first_ns = result if program.kind == "source" else result[0]
    return (first_ns - began_ns) / 1e6, (ended_ns - began_ns) / 1e6


async def _wait_for_spares(host: tartlet.Host) -> None:
    """Let the spares be ready again, if the host keeps any; and what was just run be gone."""
    deadline = time.monotonic() + _SPARE_SECONDS
    while time.monotonic() < deadline:
        await asyncio.sleep(0.002)
        runs = host.stats().runs
        is_ready = runs.spares_parked == SPARES or not runs.spares_taken + runs.spares_parked
        if is_ready and not runs.live:
            return


async def _launch(host: tartlet.Host, program: tartlet.Program, times: int) -> tuple[float, float]:
    """Run a program many times, a few at once: runs per second, and milliseconds of the process's CPU time for each."""
    numbers = iter(range(times))

    async def launch_some() -> None:
        for _ in numbers:
            await host.run(program, 0 if program.kind == "component" else None)

    began, cpu_began = time.monotonic(), time.process_time()
    await asyncio.gather(*(launch_some() for _ in range(IN_FLIGHT)))
    return times / (time.monotonic() - began), 1000 * (time.process_time() - cpu_began) / times
