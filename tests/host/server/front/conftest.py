"""An application on sandboxes without a model, and clients for it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

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
async def services(sandboxes: Sandboxes, tmp_path: Path) -> AsyncIterator[Services]:
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
