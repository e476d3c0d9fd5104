"""What it costs that the engine is in another process: programs beside it, against programs whose host holds it.

The same programs run on the same model twice, loaded in this process and in one of its own; while one is measured the
other one is idle. Each figure over the socket stands between two in process. A token of plain generation crosses the
socket once; a step with a program crosses it twice, and its way is on the critical path.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec

from benchmarks.hosting import OpenHost, open_host
from benchmarks.report import Row, at_most, row
from benchmarks.rounds import Figures, between, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose
from tartlet.errors import EngineStoppedError
from tartlet.server.engine.settings import EngineSettings
from tartlet.server.engine.socket_client import SocketClient, connect_engine
from tartlet.server.wire.socket_folder import SocketFolder

ROUNDS = 5
TOKENS = {1: 96, 10: 64, 40: 32}
"""By how many sequences write so many each."""
QUESTIONS = 200
MOST_OVER = 0.05
"""Of the time per token: what a server may add."""


def measure(settings: Settings) -> Iterator[Row]:
    """Give the time of a token and of a step, in process, and by how much they are longer over the socket."""
    with (
        closing(compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False)) as engine,
        _engine_process(settings) as client,
        open_host(engine, spares=2) as inside,
        open_host(client, spares=2) as outside,
    ):
        yield from _round_trips(inside, outside, settings)
        for num_sequences, num_tokens in TOKENS.items() if not settings.is_quick else ((2, 4),):
            for way, what in (("plain", "a token"), ("steps", "a step with Python")):
                name = f"{num_sequences} sequence{'s' if num_sequences > 1 else ''}: {what}"
                yield from _rows(inside, outside, settings, (num_sequences, num_tokens, way), name)


def _round_trips(inside: OpenHost, outside: OpenHost, settings: Settings) -> Iterator[Row]:
    """A command and its answer, when the engine has nothing else to do: no forward pass is in it."""

    def microseconds(host: OpenHost) -> float:
        times = []
        for _ in range(settings.scaled(QUESTIONS, 10)):
            began = time.perf_counter()
            host.call(host.host.saved_contexts())
            times.append((time.perf_counter() - began) * 1e6)
        return statistics.median(times)

    def measure_round(_: int) -> Figures:
        base, more = between(lambda: microseconds(inside), {"over": lambda: microseconds(outside)})
        return {"inside": base, "more": more["over"]}

    rounds = measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)
    yield row(rounds, "inside", "us", label="a question and its answer, from the host's loop, in process")
    yield row(rounds, "more", "us/question", label="a question and its answer: more over the socket")


def _rows(
    inside: OpenHost, outside: OpenHost, settings: Settings, given: tuple[int, int, str], name: str
) -> Iterator[Row]:
    num_sequences, num_tokens, way = given
    options = {"sequences": num_sequences, "tokens": num_tokens, "way": way}

    def milliseconds(host: OpenHost) -> float:
        return float(host.run(host.load("stepper.py"), options)) * 1000 / num_tokens

    def measure_round(_: int) -> Figures:
        base, more = between(lambda: milliseconds(inside), {"over": lambda: milliseconds(outside)})
        return {"inside": base, "more": more["over"] * 1000, "over": more["over"] / base}

    rounds = measure_rounds(measure_round, settings.scaled(ROUNDS, 1), settings)
    yield row(rounds, "inside", "ms/step", label=f"{name}, in process")
    yield row(rounds, "more", "us/step", label=f"{name}: more over the socket")
    yield row(rounds, "over", "ratio", at_most(MOST_OVER), label=f"{name}: of its time, more over the socket")


@contextmanager
def _engine_process(settings: Settings) -> Iterator[SocketClient]:
    """An engine with the same model in a process of its own, and a client of it."""
    given = EngineSettings(model=settings.model, threads=settings.threads, prefix_cache=False)
    with SocketFolder() as folder:
        path = folder.socket_path("engine")
        command = [sys.executable, "-m", "tartlet.server.engine", f"--socket={path}", f"--parent={os.getpid()}"]
        command.append(f"--settings={msgspec.json.encode(given).decode()}")
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                while True:
                    if process.poll() is not None:
                        raise RuntimeError(f"the engine's process has ended with status {process.returncode}")
                    try:
                        client = connect_engine(path)
                        break
                    except EngineStoppedError:
                        time.sleep(0.05)
                with closing(client):
                    yield client
            finally:
                process.kill()
