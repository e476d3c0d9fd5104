"""What a program costs in each language, and how much of the conformance suite it passes."""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

import tartlet
from benchmarks import machine
from benchmarks.hosting import INFERLETS, OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, measure_rounds
from benchmarks.settings import Settings
from tartlet.bindings.log import INTERFACE as LOG
from tartlet.languages.language import Language
from tartlet.languages.registry import LANGUAGES
from tartlet.progress import silent
from tartlet.testing import FakeEngine
from tartlet.wasm.host_function import HostFunction

sys.path.insert(0, str(INFERLETS.parents[1] / "guest-sdk" / "conformance"))

import languages as ports
import suite

PROGRAMS = {"python": "wait.py", "javascript": "wait.ts", "rust": "wait.rs", "c": "wait.c"}
"""By language; in inferlets/languages: says that it has begun, and waits for as long as it is told."""
MOST_START_MS = {"python": 10.0, "javascript": 2.0, "rust": 0.3, "c": 0.3}
MOST_KB = {"python": 3000.0, "javascript": 300.0, "rust": 64.0, "c": 64.0}
ROUNDS = 5
HOUR_S = 3600.0


def measure(settings: Settings) -> Iterator[Row]:
    """Give figures of each language whose tools are here; others are named on stderr."""
    for language in LANGUAGES:
        if missing := ports.missing_tools(language.name):
            print(f"languages: {language.title} is left out: {missing}", file=sys.stderr)
        else:
            yield from _costs(language, settings)
            yield from _cases(language, settings)


def _costs(language: Language, settings: Settings) -> Iterator[Row]:
    """Size and time of a build, time of a start, and memory of a run that waits."""
    name, source = language.name, INFERLETS / "languages" / PROGRAMS[language.name]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "program.wasm")
        if not settings.is_quick:
            language.build_component(source, output, silent)  # the first build also makes what the others share
        built = measure_rounds(lambda _: _build(language, source, output), settings.scaled(3, 1), settings, warm_up=0)
        yield row(built, "build", "s", label=f"{name}: build")
        yield row(built, "component", "KB", label=f"{name}: component")
        engine = FakeEngine()
        with _first_words() as begun, open_host(engine) as host:
            program = host.load(output.read_bytes())
            figures = measure_rounds(
                lambda _: _run(host, program, begun, settings), settings.scaled(ROUNDS, 1), settings
            )
        engine.close()
    yield row(figures, "start", "ms", at_most(MOST_START_MS[name]), label=f"{name}: start")
    yield row(figures, "memory", "KB", at_most(MOST_KB[name]), label=f"{name}: memory of a waiting run")


def _build(language: Language, source: Path, output: Path) -> Figures:
    began = time.monotonic()
    language.build_component(source, output, silent)
    return {"build": time.monotonic() - began, "component": output.stat().st_size / 1000}


@contextmanager
def _first_words() -> Iterator[list[int]]:
    """Notes when programs print, in nanoseconds of the monotonic clock: no clock of a guest's is needed."""
    begun: list[int] = []
    functions = cast(dict[str, HostFunction], LOG)
    original = functions["print"]

    def note(fiber: object, text: str) -> object:
        begun.append(time.monotonic_ns())
        return original(fiber, text)

    functions["print"] = note
    try:
        yield begun
    finally:
        functions["print"] = original


def _run(host: OpenHost, program: tartlet.Program, begun: list[int], settings: Settings) -> Figures:
    starts = [host.call(_start(host.host, program, begun)) for _ in range(settings.scaled(40, 2))]
    num_runs = settings.scaled(100, 4)
    return {"start": statistics.median(starts), "memory": host.call(_memory(host.host, program, num_runs))}


async def _start(host: tartlet.Host, program: tartlet.Program, begun: list[int]) -> float:
    """Milliseconds from the call to the program's first one."""
    begun.clear()
    began_ns = time.monotonic_ns()
    await host.run(program, {"seconds": 0})
    return (begun[0] - began_ns) / 1e6


async def _memory(host: tartlet.Host, program: tartlet.Program, num_runs: int) -> float:
    """Kilobytes that a run which waits adds to the process."""
    await _hold(host, program, 1)  # what is made once is not theirs
    return await _hold(host, program, num_runs)


async def _hold(host: tartlet.Host, program: tartlet.Program, num_runs: int) -> float:
    gc.collect()
    base = machine.pss_bytes()
    runs = [await host.start(program, {"seconds": HOUR_S}) for _ in range(num_runs)]
    for run in runs:
        await anext(run)  # it has begun
    used = machine.pss_bytes() - base
    for run in runs:
        run.cancel()
    await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
    return used / num_runs / 1000


def _cases(language: Language, settings: Settings) -> Iterator[Row]:
    """How many cases of each subject have the transcript that is expected."""
    port, transcripts = ports.LANGUAGES.get(language.name), suite.read_transcripts()
    cases = [case for case in suite.read_cases().values() if case.name in transcripts]
    if settings.is_quick:
        cases = [case for case in cases if case.group == "models"]
    passed: Counter[str] = Counter()
    with ExitStack() as stack:
        hosts = {}
        for case in cases:
            if port is not None and case.name not in ports.NOT_THERE[language.name]:
                if case.engine not in hosts:
                    hosts[case.engine] = stack.enter_context(suite.HOSTS[case.engine](port))
                passed[case.group] += hosts[case.engine].run(case) == transcripts[case.name]
    for group, number in Counter(case.group for case in cases).items():
        yield Row(f"{language.name}: {group}", [passed[group]], f"of {number}")
