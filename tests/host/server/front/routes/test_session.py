from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tartlet.server.front.services import Services
from tests.host.server.front.conftest import ENDLESS

pytestmark = pytest.mark.runner


@pytest.fixture
async def run_id(client: httpx2.AsyncClient, upload: Any) -> str:
    await upload(ENDLESS, "endless")
    run = await client.post("/v1/inferlets/endless/runs", json={"wait": False})
    return str(run.json()["id"])


async def test_a_session_from_start_to_end(exchange: Any, run_id: str) -> None:
    """Events out, a cancel in, and the end."""
    session = exchange("WEBSOCKET", f"/v1/runs/{run_id}/session")
    assert (await session.hear())["type"] == "websocket.accept"
    assert (await session.heard())["type"] == "started"
    assert (await session.heard())["text"] == "started\n"
    session.say({"type": "cancel"})
    types = [(await session.heard())["type"] for _ in range(2)]

    assert types == ["usage", "finished"]
    assert (await session.hear())["type"] == "websocket.close"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "message", "text": "hi"}, "unsupported"),
        ({"type": "shout"}, "invalid_request"),
        ([], "invalid_request"),
        ("x" * 100_000, "invalid_request"),
    ],
)
async def test_what_cannot_be_said(exchange: Any, run_id: str, services: Services, message: Any, code: str) -> None:
    """The client hears so, and the session goes on."""
    session = exchange("WEBSOCKET", f"/v1/runs/{run_id}/session", query="after=1")
    await session.hear()
    session.say(message)
    answer = await session.heard()

    assert (answer["type"], answer["error"]["code"]) == ("error", code)
    assert services.runs.num_live == 1


async def test_another_tenants_run(exchange: Any, run_id: str) -> None:
    """There is none."""
    session = exchange("WEBSOCKET", f"/v1/runs/{run_id}/session", key="key-of-globex")
    answer = await session.hear()

    assert (answer["type"], answer["status"]) == ("websocket.http.response.start", 404)


async def test_a_parameter_that_is_wrong(exchange: Any, run_id: str) -> None:
    """It is answered as it is elsewhere."""
    session = exchange("WEBSOCKET", f"/v1/runs/{run_id}/session", query="after=-1")
    answer = await session.hear()
    body = json.loads((await session.hear())["body"])

    assert (answer["type"], answer["status"]) == ("websocket.http.response.start", 400)
    assert body["error"]["param"] == "after"


async def test_the_last_who_listens_and_vanishes(exchange: Any, upload: Any, services: Services) -> None:
    """A run that is not detached ends with its session."""
    await upload(ENDLESS, "endless")
    request = exchange("POST", "/v1/inferlets/endless/runs", json_body={"stream": True})
    await request.hear()
    (run,) = services.runs.live_of("acme")
    session = exchange("WEBSOCKET", f"/v1/runs/{run.run_id}/session")
    await session.hear()
    await session.hear()
    request.vanish()
    await asyncio.wait_for(request.task, 10)
    assert not run.has_ended
    session.vanish("websocket")
    await asyncio.wait_for(run.ended(), 10)

    assert run.has_ended
