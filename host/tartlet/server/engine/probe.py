"""What the front asks the engine's process: which models there are, counters, and whether it makes progress."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path

from tartlet.errors import EngineStoppedError, WireError
from tartlet.server.engine.messages import (
    MOST_BYTES,
    AskStats,
    AskTotals,
    FromEngine,
    Hello,
    Ping,
    Pong,
    Refused,
    RunTotals,
    Stats,
    Totals,
    Welcome,
)
from tartlet.server.wire.streams import MessageStream, connect
from tartlet_engine.api import EngineStats, ModelInfo


class EngineProbe:
    """A connection to the engine on which nothing runs. Made by `EngineProbe.connect`; `close` must be called."""

    def __init__(self, stream: MessageStream[FromEngine], welcome: Welcome) -> None:
        self._stream = stream
        self._models = welcome.models
        self._request_ids = itertools.count(1)
        self._requests: dict[int, asyncio.Future[FromEngine]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path) -> EngineProbe:
        """Connect to the engine that is served at a socket.

        Raises:
            EngineStoppedError: Nobody serves one there yet, or it refuses.
        """
        try:
            stream: MessageStream[FromEngine] = await connect(path, FromEngine, most_frame=MOST_BYTES)
        except WireError as error:
            raise EngineStoppedError(f"there is no engine at {path}: {error.message}") from None
        try:
            stream.send(Hello())
            welcome = await stream.receive()
            if not isinstance(welcome, Welcome):
                reason = welcome.message if isinstance(welcome, Refused) else "it does not welcome anybody"
                raise EngineStoppedError(f"the engine at {path} refuses: {reason}")
            return cls(stream, welcome)
        except BaseException as error:
            await stream.close()
            if isinstance(error, WireError):
                raise EngineStoppedError(f"the engine at {path} is gone: {error.message}") from None
            raise

    @property
    def models(self) -> Sequence[ModelInfo]:
        """The facts of the models, the default first."""
        return self._models

    async def stats(self) -> EngineStats:
        """Ask for the counters as of the last step. Raises EngineStoppedError if the engine is gone."""
        answer = await self._ask(AskStats(next(self._request_ids)))
        assert isinstance(answer, Stats)
        return answer.stats

    async def ping(self) -> None:
        """Wait until the engine's own thread has come to answer, between two steps. For how long, the caller says.

        Raises:
            EngineStoppedError: The engine is gone.
        """
        await self._ask(Ping(next(self._request_ids)))

    async def totals(self, names: Sequence[str]) -> dict[str, RunTotals]:
        """Ask what lost runs had used, as far as they have been closed. Raises EngineStoppedError."""
        answer = await self._ask(AskTotals(next(self._request_ids), tuple(names)))
        assert isinstance(answer, Totals)
        return answer.totals

    async def wait_lost(self) -> None:
        """Wait until the engine is gone."""
        await asyncio.wait([self._reading])

    async def close(self) -> None:
        """Close the connection. Idempotent; whoever waits hears that the engine is gone."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        await self._stream.close()

    async def _ask(self, request: AskStats | AskTotals | Ping) -> FromEngine:
        if self._reading.done():
            raise EngineStoppedError("the connection to the engine's process was lost")
        future = self._requests[request.request_id] = asyncio.get_running_loop().create_future()
        try:
            with contextlib.suppress(WireError):  # the reading task hears of it, too
                self._stream.send(request)
            answer: FromEngine = await future
            return answer
        finally:
            self._requests.pop(request.request_id, None)

    async def _read(self) -> None:
        """Hand out answers until the connection is lost."""
        try:
            while True:
                answer = await self._stream.receive()
                if isinstance(answer, Stats | Pong | Totals):
                    future = self._requests.get(answer.request_id)
                    if future is not None and not future.done():  # who asked may have given up just now
                        future.set_result(answer)
        except WireError:
            pass  # told to whoever waits
        finally:
            for future in self._requests.values():
                if not future.done():
                    future.set_exception(EngineStoppedError("the connection to the engine's process was lost"))
