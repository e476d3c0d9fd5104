"""The front from its start to its end: storage, programs, HTTP; and a shut-down that lets runs come to their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvicorn

from tartlet import paths
from tartlet.errors import ConfigError
from tartlet.progress import Progress
from tartlet.server.front.app import create_app
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.housekeeping import keep_house
from tartlet.server.front.http_protocol import BoundedHttp, BoundedWebSocket
from tartlet.server.front.metering import meter
from tartlet.server.front.services import Services, make_services
from tartlet.server.front.storage import open_storage
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.settings import Settings

logger = logging.getLogger("tartlet.server")

CLOSE_TIMEOUT_S = 5
"""How long open connections may take when all runs have ended."""
READY_PERIOD_S = 0.1
SIGNALS = (signal.SIGTERM, signal.SIGINT)

OpenSandboxes = Callable[[Settings, Progress], AbstractAsyncContextManager[Sandboxes]]
Announce = Callable[[str, str | None], None]
"""Tells the server's URL, and the operator's key if it was made just now."""


async def run_server(settings: Settings, open_sandboxes: OpenSandboxes, progress: Progress, announce: Announce) -> None:
    """Serve until a signal comes and all runs have ended, or the time for that is over.

    Args:
        settings: of the server.
        open_sandboxes: opens whoever runs programs.
        progress: hears of what is fetched, built and loaded.
        announce: is called when the server listens.

    Raises: ConfigError, ModelError, UnavailableError if it cannot start.
    """
    database = settings.database.get_secret_value() if settings.database else None
    with _Signals() as signals:
        async with AsyncExitStack() as stack:
            storage = await stack.enter_async_context(open_storage(database))
            await storage.become_front()  # before a model is loaded for nothing
            sandboxes = await stack.enter_async_context(open_sandboxes(settings, progress))
            services = make_services(settings, storage, Blobs(blobs_folder()), sandboxes)
            await _sweep(services)
            num_lost = await storage.runs.end_all_lost()
            if num_lost:
                logger.warning("runs that had no end", extra={"runs": num_lost})

            async def tell(url: str) -> None:
                first_key = await storage.keys.create_first()  # not before: it can be shown only once
                announce(url, None if first_key is None else first_key.token)

            try:
                async with _background(services):
                    await _serve(services, signals, tell)
            finally:
                await services.runs.close()


def blobs_folder() -> Path:
    """Where uploaded programs lie: in `TARTLET_HOME`, in a folder that is the owner's alone."""
    folder = paths.server_folder() / "blobs"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


async def _sweep(services: Services) -> None:
    """Remove files of programs that no tenant has."""
    known = await services.storage.inferlets.all()
    services.catalogue.blobs.sweep(known)
    services.catalogue.code.sweep(known)


@asynccontextmanager
async def _background(services: Services) -> AsyncIterator[None]:
    works = (
        services.loop_lag.measure(),
        _tell_when_ready(services),
        meter(services.runs, services.storage),
        keep_house(services.storage, services.settings.keep_runs_days),
    )
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tell_when_ready(services: Services) -> None:
    """The server listens before it has its model, so that its health can be asked for."""
    while not services.sandboxes.is_ready:
        await asyncio.sleep(READY_PERIOD_S)
    logger.info("ready", extra={"models": ", ".join(model.name for model in services.sandboxes.models)})


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to us, and tells when it listens."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[int], Awaitable[None]]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Listen."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            port = next(socket.getsockname()[1] for server in self.servers for socket in server.sockets)
            await self._on_listening(port)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield


class _Signals:
    """Signals to stop, once they are taken: before that they end the process as usual, in the midst of its start."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._came: asyncio.Queue[int] = asyncio.Queue()

    def __enter__(self) -> _Signals:
        return self

    def __exit__(self, *_: object) -> None:
        for each in SIGNALS:
            self._loop.remove_signal_handler(each)

    def take(self) -> None:
        """Take them from now on."""
        for each in SIGNALS:
            self._loop.add_signal_handler(each, self._came.put_nowait, each)

    async def wait(self) -> None:
        """Wait for the next."""
        await self._came.get()


async def _serve(services: Services, signals: _Signals, announce: Callable[[str], Awaitable[None]]) -> None:
    settings = services.settings
    shown_host = f"[{settings.host}]" if ":" in settings.host else settings.host
    config = uvicorn.Config(
        create_app(services),
        host=settings.host,
        port=settings.port,
        loop="none",
        http=BoundedHttp,
        ws=BoundedWebSocket,
        ws_max_size=1 << 20,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=settings.max_connections,
        timeout_keep_alive=int(settings.keep_alive_s),
        timeout_graceful_shutdown=CLOSE_TIMEOUT_S,
    )
    server = _Server(config, lambda port: announce(f"http://{shown_host}:{port}"))
    signals.take()
    stopping = asyncio.create_task(_stop_on_signal(server, services, signals))
    starting = asyncio.create_task(_stop_unless_started(server, services))
    try:
        await server.serve()
    except SystemExit as error:  # uvicorn's way to say that it cannot listen
        number = getattr(error.__context__, "errno", None)
        why = "" if number is None else f": {os.strerror(number)}"
        hint = "Choose another with --port; 0 is any that is free."
        raise ConfigError(f"cannot listen on {shown_host}:{settings.port}{why}", hint=hint) from None
    finally:
        stopping.cancel()
        starting.cancel()
        _, failure = await asyncio.gather(stopping, starting, return_exceptions=True)
    if isinstance(failure, Exception):
        raise failure


async def _stop_unless_started(server: uvicorn.Server, services: Services) -> None:
    """Wait for the model. If the engine cannot be started with these settings, the server ends."""
    try:
        await services.sandboxes.started()
    except Exception:
        server.should_exit = True
        raise


async def _stop_on_signal(server: uvicorn.Server, services: Services, signals: _Signals) -> None:
    """Wait for a signal, then drain; a second one cuts that short."""
    await signals.wait()
    logger.info("draining", extra={"runs": services.runs.num_live, "seconds": services.settings.drain_s})
    draining = asyncio.create_task(services.runs.drain(services.settings.drain_s))
    again = asyncio.create_task(signals.wait())
    try:
        await asyncio.wait({draining, again}, return_when=asyncio.FIRST_COMPLETED)
        if again.done():
            await services.runs.close()
    finally:
        for task in (draining, again):
            task.cancel()
        await asyncio.gather(draining, again, return_exceptions=True)
        server.should_exit = True
