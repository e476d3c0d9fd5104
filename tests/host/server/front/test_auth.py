from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Request, WebSocket
from starlette.testclient import TestClient, WebSocketDenialResponse

from tartlet.server.front import auth
from tartlet.server.front.app import create_app
from tartlet.server.front.auth import CallerParam, needs, needs_of, public
from tartlet.server.front.services import Services

router = APIRouter()


@router.get("/undeclared")
async def undeclared() -> str:
    return "secret"


@router.get("/runs-only")
@needs("runs:start")
async def runs_only(caller: CallerParam) -> str:
    return caller.tenant


@router.get("/admin-only")
@needs("admin")
async def admin_only() -> str:
    return "figures"


@router.get("/public")
@public
async def for_all() -> str:
    return "hello"


@router.post("/echo")
@needs("runs:start", max_body_bytes=10)
async def echo(request: Request) -> str:
    return (await request.body()).decode()


@router.websocket("/socket")
@needs("runs:start")
async def socket(websocket: WebSocket, caller: CallerParam) -> None:
    await websocket.accept()
    await websocket.send_text(caller.tenant)
    await websocket.close()


@pytest.fixture
def app(services: Services) -> FastAPI:
    return create_app(services, [router])


@pytest.fixture
async def guarded(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://server") as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_every_route_of_the_server_declares_what_it_needs(services: Services) -> None:
    """A new route without a declaration does not go unseen; it would be refused."""
    routes = create_app(services).routes

    assert len(routes) > 3
    assert [route for route in routes if needs_of(route) is None] == []


async def test_what_declares_nothing_is_refused(guarded: httpx2.AsyncClient) -> None:
    """Even with the best of keys."""
    response = await guarded.get("/undeclared", headers=bearer("key-of-admin"))

    assert response.status_code == 403
    assert "secret" not in response.text


async def test_a_key_stands_for_its_tenant(guarded: httpx2.AsyncClient) -> None:
    """The endpoint hears whose key it is."""
    assert (await guarded.get("/runs-only", headers=bearer("key-of-acme"))).json() == "acme"
    assert (await guarded.get("/runs-only", headers=bearer("key-of-globex"))).json() == "globex"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "missing_api_key"),
        ({"Authorization": "Bearer"}, 401, "missing_api_key"),
        ({"Authorization": "Basic key-of-acme"}, 401, "missing_api_key"),
        ({"Authorization": "Bearer wrong"}, 401, "invalid_api_key"),
        ({"Authorization": "Bearer " + "k" * 10_000}, 401, "invalid_api_key"),
        ({"Authorization": "Bearer key-of-nothing"}, 403, "permission_denied"),
    ],
)
async def test_what_a_key_does_not_allow_is_refused(
    guarded: httpx2.AsyncClient, headers: dict[str, str], status: int, code: str
) -> None:
    """With an error that says what is missing."""
    response = await guarded.get("/runs-only", headers=headers)

    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert ("www-authenticate" in response.headers) == (status == 401)


async def test_who_lacks_a_scope_reads_who_gives_it(guarded: httpx2.AsyncClient) -> None:
    """By name, with what the operator would do."""
    error = (await guarded.get("/admin-only", headers=bearer("key-of-acme"))).json()["error"]

    assert "`admin`" in error["message"]
    assert "tartlet key create" in error["hint"]


async def test_a_scope_is_not_another(guarded: httpx2.AsyncClient) -> None:
    """Only the operator's scope includes all."""
    assert (await guarded.get("/admin-only", headers=bearer("key-of-acme"))).status_code == 403
    assert (await guarded.get("/admin-only", headers=bearer("key-of-admin"))).status_code == 200


async def test_public_routes_need_no_key(guarded: httpx2.AsyncClient) -> None:
    """A wrong one does no harm there."""
    assert (await guarded.get("/public")).json() == "hello"
    assert (await guarded.get("/public", headers=bearer("wrong"))).json() == "hello"


async def test_a_long_body_is_refused_before_it_is_read(guarded: httpx2.AsyncClient) -> None:
    """By its length, or as soon as it gets too long; the route's bound counts, not the server's."""
    allowed = await guarded.post("/echo", content=b"0123456789", headers=bearer("key-of-acme"))
    announced = await guarded.post("/echo", content=b"0123456789A", headers=bearer("key-of-acme"))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"01234"

    unannounced = await guarded.post("/echo", content=pieces(), headers=bearer("key-of-acme"))

    assert allowed.json() == "0123456789"
    assert announced.status_code == unannounced.status_code == 413
    assert announced.json()["error"]["code"] == unannounced.json()["error"]["code"] == "body_too_large"


async def test_nobodys_body_is_not_read(guarded: httpx2.AsyncClient) -> None:
    """Without a key, nothing is taken in."""

    async def pieces() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    assert (await guarded.post("/echo", content=pieces())).status_code == 401


async def test_a_body_that_does_not_come(guarded: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops in the midst of it is not waited for for ever."""
    monkeypatch.setattr(auth, "BODY_TIMEOUT_S", 0.01)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"0123"
        await asyncio.Event().wait()

    response = await guarded.post("/echo", content=pieces(), headers=bearer("key-of-acme"))
    assert response.status_code == 408


async def test_a_length_that_is_no_number_is_refused(guarded: httpx2.AsyncClient) -> None:
    """It fails that request alone."""
    headers = {**bearer("key-of-acme"), "Content-Length": "-5"}

    assert (await guarded.post("/echo", headers=headers)).status_code == 400


def test_sockets_are_guarded_too(app: FastAPI) -> None:
    """A WebSocket is refused with an answer that says why."""
    client = TestClient(app)
    with client.websocket_connect("/socket", headers=bearer("key-of-acme")) as session:
        assert session.receive_text() == "acme"
    with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/socket"):
        pass

    assert refused.value.status_code == 401
