"""Uploads that mean harm, over HTTP: each is answered with what is wrong, and nobody else notices."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from tartlet.server.front.services import Services
from tests import hostile_components as hostile
from tests.host.server.front.conftest import ClientOf

WASM = {"Content-Type": "application/wasm"}
SLOW = hostile.inferlet_with(hostile.many_calls(1000, 3500))


@pytest.fixture
def compile_here() -> None:
    """Not here: by children."""


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (hostile.inferlet_with(hostile.functions(262_144)), "too_many_functions"),
        (hostile.inferlet_with(hostile.one_function(7_000_000)), "function_too_large"),
        (hostile.multiplied(9, 10), "too_many_instances"),
        (hostile.inferlet()[:-3], "truncated"),
        (b"\0asm\x01\0\0\0", "not_a_component"),
        (hostile.component(), "missing_export"),
        (hostile.imports_named("\x1b[2J" + "x" * 100_000), "unknown_import"),
    ],
)
async def test_each_is_refused_by_its_code(
    client: httpx2.AsyncClient, services: Services, data: bytes, code: str
) -> None:
    """With the numbers and what to do. Nothing is kept of it."""
    response = await client.post("/v1/inferlets", content=data, headers=WASM)

    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == code
    assert (await client.get("/v1/inferlets")).json()["data"] == []
    assert [path for path in _files(services) if path.stat().st_size] == []


async def test_a_good_component_is_run(client: httpx2.AsyncClient, component: object) -> None:
    """After a child has compiled it."""
    data = component("", data="[1]")  # type: ignore[operator]
    uploaded = await client.post("/v1/inferlets", content=data, headers=WASM)
    assert uploaded.status_code == 201, uploaded.text
    run = await client.post(f"/v1/inferlets/{uploaded.json()['id']}/runs", json={})

    assert run.json()["result"] == [1]


async def test_others_are_served_meanwhile(client_of: ClientOf, services: Services) -> None:
    """While two bombs of one tenant are being compiled, another's upload is taken in; given up, they leave nothing."""
    bomber, other = client_of("key-of-acme"), client_of("key-of-globex")
    bombs = [asyncio.create_task(bomber.post("/v1/inferlets", content=SLOW + part, headers=WASM)) for part in _PARTS]
    await asyncio.sleep(0)
    response = await other.post("/v1/inferlets", content=hostile.inferlet(), headers=WASM)

    assert response.status_code == 201, response.text
    assert not any(bomb.done() for bomb in bombs)
    for bomb in bombs:
        bomb.cancel()
    await asyncio.gather(*bombs, return_exceptions=True)
    assert len([path for path in _files(services) if path.stat().st_size]) == 1


_PARTS = (hostile.section(0, b"\x01a"), hostile.section(0, b"\x01b"))  # so that they are not one


def _files(services: Services) -> list[Path]:
    """All files that are kept of uploads."""
    folder = services.catalogue.blobs.path("acme", "0" * 64).parent.parent
    return [path for path in folder.rglob("*") if path.is_file()]
