from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

pytestmark = pytest.mark.runner

ANSWERING = """
from tartlet_sdk import inferlet

@inferlet
def main(request: dict) -> object:
    match request["path"]:
        case "/text":
            return "hello"
        case "/json":
            return {"n": 1}
        case "/echo":
            return {"body": request}
        case "/full":
            headers = {"Content-Type": "text/html", "X-Own": "1", "Set-Cookie": "a=b", "Content-Length": "3"}
            return {"status": 404, "headers": headers, "body": "<p>no</p>"}
        case "/status":
            return {"status": 99}
        case "/204" | "/205" | "/304" as path:
            return {"status": int(path[1:]), "body": "left out"}
        case "/header":
            return {"headers": {"X-Own": "a\\r\\nSet-Cookie: b"}}
    raise ValueError("no such path")
"""


@pytest.fixture
async def web(upload: Any) -> str:
    await upload(ANSWERING, "web@1.0")
    return "/v1/serve/web"


async def test_what_a_program_returns_is_the_answer(client: httpx2.AsyncClient, web: str) -> None:
    """A text, any JSON, or a status with headers and a body."""
    text, value, full = [await client.get(f"{web}/{path}") for path in ("text", "json", "full")]

    assert (text.status_code, text.text) == (200, "hello")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert value.json() == {"n": 1}
    assert (full.status_code, full.text) == (404, "<p>no</p>")
    assert (full.headers["content-type"], full.headers["x-own"]) == ("text/html", "1")


async def test_a_program_cannot_say_everything(client: httpx2.AsyncClient, web: str) -> None:
    """What belongs to the server and to the connection it does not set; and its pages are no pages of the server's."""
    full = await client.get(f"{web}/full")

    assert "set-cookie" not in full.headers
    assert full.headers["content-length"] == "9"
    assert full.headers["content-security-policy"] == "sandbox"


@pytest.mark.parametrize("status", [204, 205, 304])
async def test_an_answer_that_has_no_body(client: httpx2.AsyncClient, web: str, status: int) -> None:
    """A body that the program gives it is left out."""
    response = await client.get(f"{web}/{status}")

    assert (response.status_code, response.content) == (status, b"")
    assert response.headers.get("content-length", "0") == "0"


async def test_what_a_program_gets(client: httpx2.AsyncClient, web: str) -> None:
    """All of the request but its credentials."""
    headers = {"X-Thing": "1", "Cookie": "secret", "X-Api-Key": "secret"}
    given = (await client.request("PUT", f"{web}/echo?a=1&a=2&b=", content="héllo", headers=headers)).json()

    assert (given["method"], given["path"], given["body"]) == ("PUT", "/echo", "héllo")
    assert given["query"] == {"a": ["1", "2"], "b": [""]}
    assert given["headers"]["x-thing"] == "1"
    assert "secret" not in str(given)
    assert "key-of-acme" not in str(given)


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/status", "/header"])
async def test_a_program_that_gives_no_answer(client: httpx2.AsyncClient, web: str, path: str) -> None:
    """The client hears that the program failed, and which run it was."""
    response = await client.get(web + path)

    assert response.status_code == 502
    assert response.json()["error"]["code"] in ("guest_error", "invalid_answer")
    assert (await client.get(f"/v1/runs/{response.headers['x-run-id']}")).status_code == 200


async def test_a_body_that_is_no_text(client: httpx2.AsyncClient, web: str) -> None:
    """It is refused."""
    assert (await client.post(f"{web}/echo", content=b"\xff")).status_code == 415


WAITING = """
import asyncio
from tartlet_sdk import inferlet

@inferlet
async def main(request: dict) -> str:
    await asyncio.sleep(3600)
    return "late"
"""


async def test_what_is_being_answered_can_be_listed_and_stopped(
    client: httpx2.AsyncClient, client_of: Any, upload: Any
) -> None:
    """By its tenant, and by nobody else; who waits for the answer hears that it was stopped."""
    await upload(WAITING, "slow")
    asking = asyncio.create_task(client.post("/v1/serve/slow/a/page?secret=1", content="x"))
    while not (data := (await client.get("/v1/serve")).json()["data"]):
        await asyncio.sleep(0.01)
    others = client_of("key-of-globex")
    nothing = [(await others.get("/v1/serve")).json()["data"]]
    nothing.append((await others.request("DELETE", "/v1/serve?name=slow")).json()["requests"])
    assert not asking.done()
    stopped = (await client.request("DELETE", "/v1/serve?name=slow")).json()
    answer = await asking

    assert nothing == [[], []]
    (listed,) = data
    (request,) = listed["requests"]
    assert (listed["name"], request["method"], request["path"]) == ("slow", "POST", "/a/page")
    assert stopped["requests"] == [request]
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "cancelled")
    assert answer.headers["x-run-id"] == request["run"]
    assert (await client.get("/v1/serve")).json()["data"] == []
    assert (await client.request("DELETE", "/v1/serve")).status_code == 400
