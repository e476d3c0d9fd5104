"""What a server costs over the embedded host: a run's start, a token, many runs at once, runs that wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx2

from benchmarks import serving
from benchmarks.direct import DirectCaller, SharedEngine
from benchmarks.hosting import INFERLETS, OpenHost, open_host
from benchmarks.report import Row, at_least, at_most, row
from benchmarks.rounds import Figures, Rounds, measure_rounds
from benchmarks.settings import Settings
from tartlet import compose

ROUNDS = 3
STARTS = 50
TOKENS = 64
CROWD = 200
CROWD_TOKENS = (16, 64)
"""Of each run: a short answer, where what a run costs by itself shows, and one of the usual length."""
IDLE = 1000
PROMPT = "The sea was calm that morning, and"


def measure(settings: Settings) -> Iterator[Row]:
    """Give the overhead of the server against the embedded host and the engine, each in the same rounds."""
    serving.raise_open_files(4 * IDLE)
    engine = SharedEngine(compose.start_engine(settings.model, threads=settings.threads, prefix_cache=False))
    flags = ("--threads", str(settings.threads), "--workers", "1")
    with open_host(engine, spares=4) as host, serving.serving(settings.model, *flags) as server:
        comparison = _Comparison(settings, host, DirectCaller(engine), server)
        rounds = comparison.rounds()
        yield row(rounds, "start", "ms", label="until a run's first line, embedded")
        yield row(rounds, "start, more", "ms", at_most(3), label="more until it over HTTP")
        yield row(rounds, "whole run", "ms", label="a run that does nothing, embedded")
        yield row(rounds, "whole run, more", "ms", label="more for it over HTTP, its record on disk")
        for way in ("whole", "stream"):
            yield row(rounds, way, "ms/token", label=f"{TOKENS} tokens ({way}), embedded")
            yield row(
                rounds, f"{way}, ratio", "ratio", at_most(1.05), label=f"{TOKENS} tokens ({way}), server / embedded"
            )
        for tokens in CROWD_TOKENS:
            label = f"{CROWD} at once, {tokens} tokens each"
            yield row(rounds, f"crowd {tokens}, engine", "tokens/s", label=f"{label}, the engine alone")
            yield row(rounds, f"crowd {tokens}, ratio", "ratio", at_least(0.95), label=f"{label}, server / engine")
        yield row(comparison.idle(), "memory", "KiB/run", label=f"{IDLE} connected runs that wait: memory")
        comparison.close()
    engine.close()


class _Comparison:
    """The same inferlet in a host here, and in a server."""

    def __init__(self, settings: Settings, host: OpenHost, engine: DirectCaller, server: serving.Server) -> None:
        self._settings = settings
        self._host = host
        self._engine = engine
        self._server = server
        self._program = host.load("service.py")
        self._client = server.client()
        self._line = serving.Line(server)
        self._inferlet = host.call(serving.upload(self._client, INFERLETS / "service.py"))
        self._tokens = settings.scaled(TOKENS, 4)
        self._crowd = settings.scaled(CROWD, 4)

    def close(self) -> None:
        """Close the connections."""
        self._host.call(self._client.aclose())
        self._host.call(self._line.close())

    def rounds(self) -> Rounds:
        """Measure everything but memory."""
        return measure_rounds(self._round, self._settings.scaled(ROUNDS, 1), self._settings)

    def _round(self, _: int) -> Figures:
        figures: dict[str, float] = {}
        starts = self._settings.scaled(STARTS, 2)
        embedded = self._seconds(self._embedded_line, starts) / starts
        served = self._seconds(self._served_line, starts) / starts
        figures |= {"start": embedded * 1000, "start, more": (served - embedded) * 1000}
        embedded = self._seconds(lambda: self._embedded("nothing"), starts) / starts
        served = self._seconds(self._served_nothing, starts) / starts
        figures |= {"whole run": embedded * 1000, "whole run, more": (served - embedded) * 1000}
        for way in ("whole", "stream"):
            embedded = self._seconds(lambda way=way: self._embedded(way), 2)  # type: ignore[misc]
            served = self._seconds(lambda way=way: self._served(way), 2)  # type: ignore[misc]
            figures |= {way: embedded * 500 / self._tokens, f"{way}, ratio": served / embedded}
        for tokens in CROWD_TOKENS:
            alone = self._engine_alone(tokens)
            figures |= {f"crowd {tokens}, engine": alone, f"crowd {tokens}, ratio": self._crowd_rate(tokens) / alone}
        return figures

    def _crowd_rate(self, tokens: int) -> float:
        """Tokens a second of many runs at once."""
        began = time.monotonic()
        asked = {"way": "whole", "tokens": tokens}
        work = [serving.run(self._client, self._inferlet, asked) for _ in range(self._crowd)]
        assert self._host.call(serving.at_once(work)) == [tokens] * self._crowd
        return self._crowd * tokens / (time.monotonic() - began)

    def _seconds(self, work: Callable[[], Coroutine[Any, Any, float | None]], times: int) -> float:
        """How long something takes, so many times one after the other; or what it says that it has taken."""

        async def repeat() -> float:
            seconds = 0.0
            for _ in range(times):
                began = time.monotonic()
                told = await work()
                seconds += time.monotonic() - began if told is None else told
            return seconds

        return self._host.call(repeat())

    async def _embedded(self, way: str) -> None:
        run = await self._host.host.start(self._program, {"way": way, "tokens": self._tokens})
        async for _ in run:
            pass
        await run.result()

    async def _embedded_line(self) -> float:
        """Seconds until a run prints its first line."""
        began = time.monotonic()
        run = await self._host.host.start(self._program, {"way": "hello"})
        await run.next_event()
        seconds = time.monotonic() - began
        await run.result()
        return seconds

    async def _served_line(self) -> float:
        """The same over HTTP."""
        body = {"input": {"way": "hello"}, "stream": True}
        return await self._line.post(f"/v1/inferlets/{self._inferlet}/runs", body, b"here")

    async def _served_nothing(self) -> float:
        """Seconds of a run that does nothing."""
        body = {"input": {"way": "nothing"}, "wait": True}
        return await self._line.post(f"/v1/inferlets/{self._inferlet}/runs", body)

    async def _served(self, way: str) -> None:
        asked = {"way": way, "tokens": self._tokens}
        if way == "stream":
            async for _ in serving.follow(self._client, self._inferlet, asked):
                pass
        else:
            await serving.run(self._client, self._inferlet, asked)

    def _engine_alone(self, tokens: int) -> float:
        """Tokens a second of as many generations, submitted to an engine directly."""
        token_ids = self._engine.encode(PROMPT)
        timeline = self._engine.generate([token_ids] * self._crowd, tokens)
        return self._crowd * tokens / timeline.seconds

    def idle(self) -> Rounds:
        """Memory of all processes with many runs that wait, each with a client that follows it."""
        count = self._settings.scaled(IDLE, 8)

        async def measured() -> float:
            before = self._server.resident_bytes()
            is_there = asyncio.Semaphore(0)
            tasks = [asyncio.create_task(self._wait_there(self._client, is_there)) for _ in range(count)]
            for _ in range(count):
                await is_there.acquire()
            after = self._server.resident_bytes()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return (after - before) / 1024 / count

        return measure_rounds(lambda _: {"memory": self._host.call(measured())}, 1, self._settings, warm_up=0)

    async def _wait_there(self, client: httpx2.AsyncClient, is_there: asyncio.Semaphore) -> None:
        async for line in serving.follow(client, self._inferlet, {"way": "wait", "seconds": 600}):
            if "here" in line:
                is_there.release()
