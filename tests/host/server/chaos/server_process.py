"""A server in processes of its own, which a test can hurt, and what must hold after that."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tartlet.server.engine.socket_client import connect_engine
from tartlet_engine.api import EngineStats

ROOT = Path(__file__).parents[4]
FRONT = Path(__file__).with_name("front_main.py")
SOURCE = {"Content-Type": "text/x-python"}

STORY = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(n: int = 200, text: str = "Once upon a time. ", times: int = 20) -> str:
    print("begun", flush=True)
    context = Model.default().context()
    context.fill(text * times)
    return (await context.generate(max_tokens=n)).text
"""
"""Says that it has begun, and generates: the engine without a model gives the text of its context back."""


async def settled(condition: Callable[[], Any | Awaitable[Any]], seconds: float = 60) -> None:
    """Wait until that holds, which other processes bring about in their own time."""
    async with asyncio.timeout(seconds):
        while True:
            held = condition()
            if await held if asyncio.iscoroutine(held) else held:
                return
            await asyncio.sleep(0.02)


class ServerProcess:
    """A server: a front, which starts its children. Its log lies in `log_path`.

    Args:
        home: Its TARTLET_HOME.
        sockets: A folder with a short path.
        command: That starts it, and prints its URL and perhaps a key.
        environment: What it gets besides.
    """

    def __init__(self, home: Path, sockets: Path, command: list[str], **environment: str) -> None:
        self.home, self.sockets, self._command = home, sockets, command
        self.log_path = home / "log"
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        folders = {"TARTLET_HOME": str(home), "XDG_RUNTIME_DIR": str(sockets), "PYTHONPATH": path}
        self._environment = {**os.environ, **folders, **environment}
        self._process: subprocess.Popen[str]
        self.url = ""
        self.key = ""
        self._clients: list[httpx2.AsyncClient] = []

    async def start(self, *, port: int | None = None) -> None:
        """Start it, and wait until it is ready. The key is that of the first start."""
        command = [each.replace('"port": 0', f'"port": {port}') for each in self._command] if port else self._command
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        words = await asyncio.to_thread(self._greeting)
        self.url = next(word for word in words if word.startswith("http"))
        self.key = next((word for word in words if word.startswith("tlk_")), self.key)
        await settled(self.is_ready)

    def _greeting(self) -> list[str]:
        """The words of what it says when it listens: a line with its URL, and a line with a key if it is made then."""
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        assert words, self.log
        return [*words, *self._process.stdout.readline().split()] if "serves" in words else words

    @property
    def pid(self) -> int:
        """Of the front."""
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it and its children have written."""
        return self.log_path.read_text()

    def children(self, module: str) -> list[int]:
        """Process ids of the children that run this module, such as `worker`."""
        found = []
        for child in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if f"tartlet.server.{module}" in child.cmdline():
                    found.append(child.pid)
        return found

    def signal_children(self, module: str, number: int) -> None:
        """Send a signal to all of them."""
        for pid in self.children(module):
            os.kill(pid, number)

    async def tartlet(self, *command: str) -> str:
        """What an operator's command says."""
        arguments = [sys.executable, "-m", "tartlet", *command]
        done = await asyncio.to_thread(
            subprocess.run, arguments, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def client(self, key: str | None = None) -> httpx2.AsyncClient:
        """A client of the operator, or of whose key it is."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        limits = httpx2.Limits(max_connections=None)
        client = httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=120, limits=limits)
        self._clients.append(client)
        return client

    async def is_ready(self) -> bool:
        """Whether it says so."""
        return await self.health("ready") == 200

    async def health(self, which: str) -> int:
        """What it says of its health; 0: nothing."""
        async with httpx2.AsyncClient(timeout=30) as client:
            try:
                return (await client.get(f"{self.url}/health/{which}")).status_code
            except httpx2.TransportError:
                return 0

    def engine_stats(self) -> EngineStats:
        """The engine's counters, asked for at its own socket; raises AssertionError if something does not add up."""
        newest = max(self.sockets.glob("tartlet-sockets-*/engine-*"), key=lambda path: path.stat().st_mtime)
        engine = connect_engine(newest)
        try:
            engine.check_integrity()
            return engine.stats()
        finally:
            engine.close()

    async def check_idle(self) -> None:
        """Raise unless it is ready, nothing runs, no page is held, and no page has got lost."""
        await settled(self.is_ready)
        stats: EngineStats

        async def is_idle() -> bool:
            nonlocal stats
            stats = await asyncio.to_thread(self.engine_stats)
            return stats.runs == stats.contexts == stats.pages_held == stats.running == stats.waiting == 0

        await settled(is_idle)
        assert stats.pages_free + stats.pages_cached + stats.pages_held == stats.pages_total
        assert '"trace"' not in self.log
        client = self.client()

        async def all_have_ends() -> bool:
            return not (await client.get("/v1/runs?status=running")).json()["data"]

        await settled(all_have_ends)

    async def stop(self) -> None:
        """End it by SIGTERM; it must end well, and leave no process behind."""
        await self.disconnect()
        family = psutil.Process(self.pid).children(recursive=True)
        self._process.terminate()
        assert await asyncio.to_thread(self._process.wait, 60) == 0, self.log
        self._close_pipe()
        assert not [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

    async def kill(self) -> None:
        """End the front by SIGKILL, and wait until its children have ended with it."""
        await self.disconnect()
        family = psutil.Process(self.pid).children(recursive=True)
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait, 60)
        self._close_pipe()
        await settled(lambda: not any(each.is_running() for each in family))

    async def disconnect(self) -> None:
        """Close all clients."""
        for client in self._clients:
            await client.aclose()
        self._clients.clear()

    async def clean_up(self) -> None:
        """End whatever is left, for a test that has failed."""
        await self.disconnect()
        if self._process.poll() is None:
            for child in psutil.Process(self.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            self._process.kill()
            self._process.wait(60)
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()


def fake_server(home: Path, sockets: Path, **options: Any) -> ServerProcess:
    """A server on an engine without a model; `options` as `front_main.py` tells."""
    options["settings"] = {"port": 0, **options.get("settings", {})}
    return ServerProcess(home, sockets, [sys.executable, str(FRONT), json.dumps(options)])


async def upload(client: httpx2.AsyncClient, text: str, name: str) -> None:
    """Upload Python source under a name."""
    answer = await client.post("/v1/inferlets", params={"name": name}, content=text, headers=SOURCE)
    assert answer.status_code in (200, 201), answer.text


async def begin(client: httpx2.AsyncClient, name: str, **given: Any) -> str:
    """Start a run that goes on by itself; its id."""
    answer = await client.post(f"/v1/inferlets/{name}/runs", json={"wait": False, "seed": 1, "input": given})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def run_of(client: httpx2.AsyncClient, run_id: str) -> Any:
    """What is known of a run."""
    return (await client.get(f"/v1/runs/{run_id}")).json()


async def ended(client: httpx2.AsyncClient, run_id: str) -> Any:
    """Wait for a run's end."""
    run: Any = None

    async def is_over() -> bool:
        nonlocal run
        run = await run_of(client, run_id)
        return bool(run["status"] != "running")

    await settled(is_over)
    return run


async def events_of(client: httpx2.AsyncClient, path: str, body: Any) -> AsyncIterator[Any]:
    """The events of a stream, as they come; the last is what ends it."""
    async with client.stream("POST", path, json=body) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                yield line.removeprefix("data: ") if line.endswith("[DONE]") else json.loads(line[6:])
