"""An application on sandboxes without a model, and clients for it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.types import ASGIApp

from tartlet.server.compile.child import answer
from tartlet.server.compile.client import CompileClient
from tartlet.server.compile.messages import CompileAnswer, CompileJob
from tartlet.server.front.app import create_app
from tartlet.server.front.auth import Caller
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.services import Services, make_services
from tartlet.server.front.storage import open_storage
from tartlet.server.sandboxes import Sandboxes
from tartlet.server.settings import Settings

ALL = frozenset({"runs:start", "runs:read", "inferlets:write", "inferlets:read", "openai"})
KEYS = {
    "key-of-acme": Caller("acme", ALL, "acme-1"),
    "key-of-globex": Caller("globex", ALL, "globex-1"),
    "key-of-nothing": Caller("acme", frozenset()),
    "key-of-admin": Caller("default", frozenset({"admin"})),
}

ClientOf = Callable[[str], httpx2.AsyncClient]


async def authenticate(key: str) -> Caller | None:
    return KEYS.get(key)


@pytest.fixture
def compile_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is uploaded is compiled in this process, which is quicker than by children; tests of those replace this."""

    async def run(client: CompileClient, job: bytes) -> CompileAnswer:

        def go_on(job: CompileJob) -> None:
            """This process is not confined: the tests go on in it."""

        return await asyncio.to_thread(answer, msgspec.json.decode(job, type=CompileJob), go_on)

    monkeypatch.setattr(CompileClient, "_run", run)


@pytest.fixture
async def services(compile_here: None, sandboxes: Sandboxes, tmp_path: Path) -> AsyncIterator[Services]:
    """What the routes work with; all runs are over when the test is."""
    folder = tmp_path / "blobs"
    folder.mkdir()
    async with open_storage(str(tmp_path / "tartlet.db")) as storage:
        for tenant in ("acme", "globex"):
            await storage.tenants.create(tenant)
        made = make_services(Settings(), storage, Blobs(folder), sandboxes)
        services = dataclasses.replace(made, authenticate=authenticate)
        yield services
        await services.runs.close()


@pytest.fixture
async def client_of(services: Services) -> AsyncIterator[ClientOf]:
    """Makes a client with this API key; an empty one is none."""
    app = create_app(services)
    clients = []

    def make(key: str) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        client = httpx2.AsyncClient(transport=transport, base_url="http://server", headers=headers)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def client(client_of: ClientOf) -> httpx2.AsyncClient:
    """A client of the tenant acme."""
    return client_of("key-of-acme")


Upload = Callable[..., Awaitable[str]]


@pytest.fixture
def upload(client: httpx2.AsyncClient) -> Upload:
    """Uploads Python source for acme, or for the tenant of another client; gives its id."""

    async def send(text: str, name: str | None = None, of: httpx2.AsyncClient | None = None) -> str:
        params = {} if name is None else {"name": name}
        headers = {"Content-Type": "text/x-python"}
        response = await (of or client).post("/v1/inferlets", params=params, headers=headers, content=text)
        assert response.status_code in (200, 201), response.text
        return str(response.json()["id"])

    return send


ECHO = """
\"\"\"Gives back what it gets.\"\"\"
from tartlet_sdk import inferlet

@inferlet
def main(value: object = None) -> object:
    print("hello")
    if value == "fail":
        raise ValueError("as asked")
    return value
"""
ENDLESS = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main() -> None:
    print("started")
    await asyncio.sleep(3600)
"""


class Exchange:
    """A request, or a WebSocket, to an application: by hand, so that the client can vanish whenever a test says so."""

    def __init__(self, app: ASGIApp, kind: str, method: str, path: str, query: str, key: str, body: bytes) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()  # by the application
        self._given: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
        scope = {"type": kind, "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
        scope |= {"query_string": query.encode(), "http_version": "1.1", "root_path": "", "scheme": "http"}
        scope |= {"server": ("server", 80), "client": ("client", 1), "subprotocols": []}
        scope |= {"extensions": {"websocket.http.response": {}}, "asgi": {"version": "3.0", "spec_version": "2.3"}}
        first = {"type": "http.request", "body": body} if kind == "http" else {"type": "websocket.connect"}
        self._given.put_nowait(first)
        self.task = asyncio.ensure_future(app(scope, self._receive, self.sent.put))

    def say(self, message: Any) -> None:
        """Send a text over the WebSocket."""
        self._given.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    def vanish(self, kind: str = "http") -> None:
        """Be gone."""
        self._given.put_nowait({"type": f"{kind}.disconnect", "code": 1006})

    async def _receive(self) -> dict[str, Any]:
        message = await self._given.get()
        if message["type"].endswith(".disconnect"):  # who asks again hears it again, as from a real server
            self._given.put_nowait(message)
        return message

    async def hear(self) -> dict[str, Any]:
        """The next message of the application."""
        return await asyncio.wait_for(self.sent.get(), 30)

    async def heard(self) -> Any:
        """The next text of the WebSocket, as JSON."""
        return json.loads((await self.hear())["text"])


ExchangeWith = Callable[..., Exchange]


@pytest.fixture
async def exchange(services: Services) -> AsyncIterator[ExchangeWith]:
    """Starts an exchange of acme's."""
    app = create_app(services)
    exchanges = []

    def start(method: str, path: str, *, query: str = "", key: str = "key-of-acme", json_body: Any = None) -> Exchange:
        kind = "websocket" if method == "WEBSOCKET" else "http"
        body = b"" if json_body is None else json.dumps(json_body).encode()
        exchanges.append(Exchange(app, kind, method, path, query, key, body))
        return exchanges[-1]

    yield start
    for each in exchanges:
        each.task.cancel()
    await asyncio.gather(*(each.task for each in exchanges), return_exceptions=True)
