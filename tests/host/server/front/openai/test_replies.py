"""Clients that go away, on a server on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import uvicorn

from tartlet.server.front.app import create_app
from tartlet.server.front.services import Services
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner

WAITING = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main(messages: list, words: int) -> str:
    for word in range(words):
        print("word")
    await asyncio.sleep(600)
"""


@pytest.fixture
async def address(services: Services) -> AsyncIterator[str]:
    """The server's."""
    server = uvicorn.Server(uvicorn.Config(create_app(services), port=0, log_level="error", lifespan="off"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await task


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("words", "stream"), [(0, False), (0, True), (3, True)])
async def test_a_client_that_goes_away_takes_its_run_with_it(
    address: str, services: Services, shelf: Any, words: int, stream: bool
) -> None:
    """Whether it waits for the whole, for the first piece, or reads a stream."""
    await shelf.publish("acme", "waiting", WAITING)
    body = {
        "model": "waiting",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": stream,
        "words": words,
    }
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer key-of-acme"}, timeout=None) as client:
        waiting = asyncio.create_task(_read(client, f"{address}/v1/chat/completions", body))
        await until(lambda: services.runs.num_live == 1)
        (run,) = services.runs.live_of("acme")
        if words:
            await until(lambda: run.last_number > 0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        outcome = await run.ended()

    assert outcome.status == "cancelled"
    assert outcome.failure is not None
    assert "client" in outcome.failure.message


async def _read(client: httpx2.AsyncClient, url: str, body: Any) -> None:
    async with client.stream("POST", url, json=body) as response:
        async for _ in response.aiter_lines():
            pass


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_an_engine_that_dies_ends_streams_with_an_error(
    address: str, services: Services, engine: FakeEngine, shelf: Any, path: str
) -> None:
    """And requests that come then are told that it is gone."""
    await shelf.publish("acme", "waiting", WAITING)
    body: dict[str, Any] = {"model": "waiting", "stream": True, "words": 2}
    body |= {"messages": [{"role": "user", "content": "Hi"}]} if path == "chat/completions" else {"input": "Hi"}
    headers = {"Authorization": "Bearer key-of-acme"}
    async with httpx2.AsyncClient(headers=headers, base_url=address, timeout=60) as client:
        lines = []
        async with client.stream("POST", f"/v1/{path}", json=body) as response:
            async for line in response.aiter_lines():
                lines.append(line)
                if "word" in line:
                    engine.crash()
        del body["words"]
        later = await client.post(f"/v1/{path}", json={**body, "model": "fake"})

    assert response.status_code == 200
    assert "engine_stopped" in [line for line in lines if line][-1]
    assert "[DONE]" not in lines[-2:]
    assert later.status_code == 503
