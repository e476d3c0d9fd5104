from __future__ import annotations

import logging
import re
from collections.abc import Callable

import httpx2
import pytest
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from tartlet.server.front.metrics import Metrics
from tartlet.server.front.request_log import RequestLog


@pytest.mark.parametrize("given", ["abc-123", "A" * 64])
async def test_a_plain_id_is_kept(client: httpx2.AsyncClient, given: str) -> None:
    """A client can find its request in the log by an id of its own."""
    response = await client.get("/health/live", headers={"x-request-id": given})

    assert response.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "http://169.254.169.254/", "A" * 65, "a\tb", '"'])
async def test_any_other_id_is_replaced(client: httpx2.AsyncClient, given: str) -> None:
    """What could mean something elsewhere does not get there."""
    response = await client.get("/health/live", headers={"x-request-id": given})

    assert re.fullmatch(r"req_[0-9a-f]{16}", response.headers["x-request-id"])


async def test_a_request_is_a_line(
    client_of: Callable[[str], httpx2.AsyncClient], caplog: pytest.LogCaptureFixture
) -> None:
    """With what an operator asks for, and nothing that was sent."""
    caplog.set_level(logging.INFO, "tartlet.requests")
    await client_of("key-of-acme").get("/health/live?secret=1", headers={"x-request-id": "abc"})
    (record,) = [record for record in caplog.records if record.name == "tartlet.requests"]

    assert record.request_id == "abc"
    assert (record.method, record.route, record.status) == ("GET", "/health/live", 200)
    assert record.duration_ms >= 0
    assert "secret" not in str(record.__dict__)
    assert "key-of-acme" not in str(record.__dict__)


async def test_what_is_refused_is_logged(
    client_of: Callable[[str], httpx2.AsyncClient], caplog: pytest.LogCaptureFixture
) -> None:
    """Under the status that the client got."""
    caplog.set_level(logging.INFO, "tartlet.requests")
    await client_of("").get("/nothing")

    assert [record.status for record in caplog.records if record.name == "tartlet.requests"] == [404]


async def test_a_client_that_goes_in_a_handshake_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """It is one line, with a status of its own; no error is left for others to tell."""

    async def gone(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnected

    async def nothing(*_: object) -> None:
        pass

    caplog.set_level(logging.INFO, "tartlet.requests")
    scope: Scope = {"type": "websocket", "headers": []}
    await RequestLog(gone, Metrics())(scope, nothing, nothing)  # type: ignore[arg-type]

    assert [record.status for record in caplog.records if record.name == "tartlet.requests"] == [499]
