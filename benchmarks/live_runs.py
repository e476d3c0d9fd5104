"""What live runs take: memory while they wait, and how promptly they are woken and ended beside others that spin."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import tartlet
from benchmarks import machine
from benchmarks.fixtures import NOW, POLL, PRINT, component, loop, sleep
from benchmarks.hosting import UNLIMITED, OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet.testing import FakeEngine

ROUNDS = 9
MEMORY_ROUNDS = 3
SPINNERS = 4

_MB = 1e6
_MS = 1e6  # nanoseconds
_NAP_NS = 5_000_000
_LIMIT_MS = 50

_SAY_THAT_IT_RUNS = "(call $print (i32.const 1024) (i32.const 1))"
_SLEEPER = component(f"{_SAY_THAT_IT_RUNS} {sleep(3600 * 10**9)} (call $record (i64.const 0))", PRINT, POLL)
_SPINNER = component(f"{_SAY_THAT_IT_RUNS} (loop $ever (br $ever)) (call $record (i64.const 0))", PRINT)
_NAPPER = component(
    loop(f"""
        (local.set $t (call $now))
        {sleep(_NAP_NS)}
        (call $record (i64.sub (i64.sub (call $now) (local.get $t)) (i64.const {_NAP_NS})))"""),
    NOW,
    POLL,
)


def measure(settings: Settings) -> Iterator[Row]:
    """Give megabytes, and milliseconds of lateness."""
    engine = FakeEngine()
    with open_host(engine) as host:
        num_wasm, num_python = settings.scaled(1000, 20), settings.scaled(100, 2)
        sleepers = host.load(_SLEEPER), host.load("sleeper.py")
        memory = measure_rounds(
            lambda _: {
                "Wasm": host.call(_memory_of(host.host, sleepers[0], num_wasm)),
                "Python": host.call(_memory_of(host.host, sleepers[1], num_python)),
            },
            settings.scaled(MEMORY_ROUNDS, 1),
            settings,
        )
        yield row(memory, "Wasm", "MB", at_most(100), label=f"memory of {num_wasm:,} suspended Wasm runs")
        yield row(memory, "Python", "MB", at_most(260), label=f"memory of {num_python:,} suspended Python runs")
        programs = host.load(_NAPPER), host.load(_SPINNER)
        prompt = measure_rounds(lambda _: _measure(host, *programs, settings), settings.scaled(ROUNDS, 1), settings)
    yield row(prompt, f"woken beside {SPINNERS} spinners, late by: median", "ms", at_most(1.0))
    yield row(prompt, f"woken beside {SPINNERS} spinners, late by: p99", "ms", at_most(4.0))
    yield row(prompt, "spinner gone after its cancel: median", "ms", at_most(10.0))
    yield row(prompt, "spinner gone after its cancel: longest", "ms", at_most(10.0))
    yield row(prompt, "spinner gone after its wall limit: longest", "ms", at_most(10.0))
    yield row(prompt, "spinner gone after its CPU limit: longest, CPU", "ms", at_most(10.0))
    engine.close()


async def _memory_of(host: tartlet.Host, program: tartlet.Program, num_runs: int) -> float:
    """Megabytes that suspended runs add to the process."""
    async with _running(host, program, 1):  # what is made once is not theirs
        pass
    gc.collect()
    base = machine.pss_bytes()
    async with _running(host, program, num_runs):
        return (machine.pss_bytes() - base) / _MB


def _measure(host: OpenHost, napper: tartlet.Program, spinner: tartlet.Program, settings: Settings) -> Figures:
    return host.call(_measure_beside_spinners(host.host, napper, spinner, settings))


async def _measure_beside_spinners(
    host: tartlet.Host, napper: tartlet.Program, spinner: tartlet.Program, settings: Settings
) -> Figures:
    times = settings.scaled(20, 1)
    async with _running(host, spinner, SPINNERS):
        late = [ns / _MS for ns in await host.run(napper, settings.scaled(200, 3))]
        cancelled = [await _time_to_cancel(host, spinner) for _ in range(times)]
        stopped = [await _overrun(host, spinner) for _ in range(times)]
    return {
        f"woken beside {SPINNERS} spinners, late by: median": statistics.median(late),
        f"woken beside {SPINNERS} spinners, late by: p99": sorted(late)[int(0.99 * len(late))],
        "spinner gone after its cancel: median": statistics.median(cancelled),
        "spinner gone after its cancel: longest": max(cancelled),
        "spinner gone after its wall limit: longest": max(wall for wall, _ in stopped),
        "spinner gone after its CPU limit: longest, CPU": max(cpu for _, cpu in stopped),
    }


async def _time_to_cancel(host: tartlet.Host, spinner: tartlet.Program) -> float:
    """Milliseconds from `Run.cancel` until the caller hears that the run is gone."""
    run = await host.start(spinner, 0)
    await run.next_event()
    began = time.monotonic()
    run.cancel()
    await _end(run)
    return (time.monotonic() - began) * 1000


async def _overrun(host: tartlet.Host, spinner: tartlet.Program) -> tuple[float, float]:
    """Milliseconds by which runs exceed their limits: of wall time, as the caller sees it, and of CPU time."""
    began = time.monotonic()
    await _end(await host.start(spinner, 0, limits=tartlet.Limits(max_wall_ms=_LIMIT_MS, max_cpu_ms=None)))
    wall_ms = (time.monotonic() - began) * 1000
    run = await host.start(spinner, 0, limits=tartlet.Limits(max_cpu_ms=_LIMIT_MS))
    await _end(run)
    return max(0.0, wall_ms - _LIMIT_MS), max(0.0, run.usage.cpu_ms - _LIMIT_MS)


async def _end(run: tartlet.Run) -> None:
    """Wait for a run that is to end with an error."""
    try:
        await run.result()
    except tartlet.RunError:
        return
    raise AssertionError("the run has ended by itself")


@asynccontextmanager
async def _running(host: tartlet.Host, program: tartlet.Program, num_runs: int) -> AsyncIterator[list[tartlet.Run]]:
    """Keep runs alive that have said that they are."""
    given: Any = 0 if program.kind == "component" else None
    runs = [await host.start(program, given, limits=UNLIMITED) for _ in range(num_runs)]
    for run in runs:
        await run.next_event()
    await asyncio.sleep(0.05)  # they said so before they went to sleep
    yield runs
    for run in runs:
        run.cancel()
    for run in runs:
        await _end(run)
