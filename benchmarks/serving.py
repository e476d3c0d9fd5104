"""A server as its clients see it: a process of its own with a database, a tenant and a key, and HTTP to it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil

TENANT = "bench"
_LIMITS = ("runs_at_once=4000", "requests_per_minute=none", "default_wall_ms=none", "wall_ms=none")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers at `url` to `key`."""

    url: str
    key: str
    database: str
    process: psutil.Process

    def client(self) -> httpx2.AsyncClient:
        """A client with as many connections as wanted."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, limits=limits, timeout=None)

    def resident_bytes(self) -> int:
        """Memory of its processes: anonymous pages, swapped ones included."""
        return sum(_anonymous_bytes(each.pid) for each in (self.process, *self.process.children(recursive=True)))


@contextmanager
def serving(model: str, *flags: str) -> Iterator[Server]:
    """Start a server, and stop it at the end."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'server.sqlite'}"
        arguments = ["serve", "--port", "0", "--model", model, "--database", database, "--log-format", "text", *flags]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(_command(*arguments), stdout=subprocess.PIPE, stderr=log)
            try:
                url = _announced(process)
                key = _make_tenant(TENANT, database)
                _wait_until_ready(url)
                yield Server(url, key, database, psutil.Process(process.pid))
            finally:
                process.terminate()
                process.wait()
                assert process.stdout is not None
                process.stdout.close()


def add_tenant(server: Server, name: str) -> str:
    """Make another tenant; gives its key."""
    return _make_tenant(name, server.database)


class Line:
    """One kept connection, for what takes a millisecond: a general client would need more than the server does."""

    def __init__(self, server: Server) -> None:
        self._address = urlsplit(server.url)
        self._key = server.key
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any, until: bytes | None = None) -> float:
        """Seconds from a request to its whole answer; or until some bytes of a body that comes in pieces are there.

        Raises RuntimeError if it is refused.
        """
        try:
            return await self._post(path, body, until)
        except (asyncio.IncompleteReadError, ConnectionError):  # the server has closed it, after a while without use
            self._ends = None
            return await self._post(path, body, until)

    async def _post(self, path: str, body: Any, until: bytes | None) -> float:
        if self._ends is None:
            self._ends = await asyncio.open_connection(self._address.hostname, self._address.port)
        reader, writer = self._ends
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: tartlet\r\nAuthorization: Bearer {self._key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        began = time.monotonic()
        writer.write(head.encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in answer.splitlines()[0]:
            raise RuntimeError(f"refused: {answer!r}")
        length = re.search(rb"(?i)content-length: (\d+)", answer)
        if length is not None:
            await reader.readexactly(int(length[1]))
            return time.monotonic() - began
        seconds: float | None = None
        while size := int(await reader.readline(), 16):
            piece = await reader.readexactly(size + 2)
            if seconds is None and (until is None or until in piece):
                seconds = time.monotonic() - began
        await reader.readexactly(2)
        assert seconds is not None
        return seconds

    async def close(self) -> None:
        """Close the connection."""
        if self._ends is not None:
            self._ends[1].close()
            await self._ends[1].wait_closed()


async def upload(client: httpx2.AsyncClient, path: Path) -> str:
    """Upload a program of source; gives its id."""
    headers = {"Content-Type": "text/x-python"}
    answer = await client.post("/v1/inferlets", content=path.read_bytes(), headers=headers)
    answer.raise_for_status()
    return str(answer.json()["id"])


async def run(client: httpx2.AsyncClient, inferlet: str, input: Any) -> Any:
    """What a run returns, awaited whole. Raises RuntimeError if it fails."""
    answer = await client.post(f"/v1/inferlets/{inferlet}/runs", json={"input": input, "wait": True})
    ended = answer.json()
    if ended.get("status") != "succeeded":
        raise RuntimeError(f"the run failed: {ended}")
    return ended["result"]


async def follow(client: httpx2.AsyncClient, inferlet: str, input: Any) -> AsyncIterator[str]:
    """The lines of a run's stream of events."""
    body = {"input": input, "stream": True}
    async with client.stream("POST", f"/v1/inferlets/{inferlet}/runs", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            yield line


async def at_once(work: list[Any]) -> list[Any]:
    """Carry out many things at once."""
    return list(await asyncio.gather(*work))


def _make_tenant(name: str, database: str) -> str:
    _tartlet("tenant", "create", name, *(f"--limit={each}" for each in _LIMITS), "--database", database)
    made = json.loads(_tartlet("key", "create", "--tenant", name, "--database", database, "--json"))
    return str(made["key"])


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from tartlet.cli import main; main()", *arguments]


def _tartlet(*arguments: str) -> str:
    return subprocess.run(_command(*arguments), check=True, capture_output=True, text=True).stdout


def _announced(process: subprocess.Popen[bytes]) -> str:
    """The address that the server tells once it serves. Raises RuntimeError if it ends instead."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(rb"https?://[0-9.:]+", line)
        if found:
            return found[0].decode()
    raise RuntimeError(f"the server ended: exit code {process.wait()}")


def _wait_until_ready(url: str) -> None:
    """Wait until it has its model, and workers."""
    while httpx2.get(f"{url}/health/ready").status_code != 200:
        time.sleep(0.1)


def _anonymous_bytes(pid: int) -> int:
    """RssAnon and VmSwap of a process; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return sum(int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("RssAnon", "VmSwap"))


def raise_open_files(count: int) -> None:
    """Allow this process so many open files, if the system lets it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
