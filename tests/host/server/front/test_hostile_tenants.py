"""What a hostile tenant can learn of another: nothing. It is answered as if there were no such thing."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from .conftest import ECHO, ClientOf, Upload

pytestmark = pytest.mark.runner

OF_RUNS = [
    ("GET", "/v1/runs/{}", None),
    ("DELETE", "/v1/runs/{}", None),
    ("GET", "/v1/runs/{}/events", None),
    ("GET", "/v1/runs?after={}", None),
]
OF_INFERLETS = [
    ("GET", "/v1/inferlets/{}", None),
    ("DELETE", "/v1/inferlets/{}", None),
    ("DELETE", "/v1/inferlets/names/{}", None),
    ("GET", "/v1/inferlets?after={}", None),
    ("POST", "/v1/inferlets/{}/runs", {}),
    ("PUT", "/v1/inferlets/names/mine", {"inferlet": "{}"}),
    ("POST", "/v1/inferlets/own/runs", {"programs": ["{}"]}),
    ("GET", "/v1/serve/{}/path", None),
    ("GET", "/v1/models/{}", None),
    ("POST", "/v1/chat/completions", {"model": "{}", "messages": [{"role": "user", "content": "Hi"}]}),
]


async def test_runs_and_inferlets_of_another(client_of: ClientOf, client: httpx2.AsyncClient, upload: Upload) -> None:
    """Status, headers and words are those for ids and names that nobody has; and what is there stays."""
    hostile = client_of("key-of-globex")
    digest = await upload(ECHO, "secret-plan@1")
    await upload(ECHO + "# mine\n", "own", hostile)
    run_id = (await client.post("/v1/inferlets/secret-plan/runs", json={"input": {"value": 1}})).json()["id"]

    names = [(digest, "0" * 64), (digest[:12], "0" * 12), ("secret-plan@1", "nobody-plan@1"), ("secret-plan", "nobody")]
    asked = [(*request, run_id, "run_" + "0" * 32) for request in OF_RUNS]
    asked += [(*request, theirs, nobodys) for request in OF_INFERLETS for theirs, nobodys in names]
    for method, path, body, theirs, nobodys in asked:
        found = [await _answer(hostile, method, path, body, name) for name in (theirs, nobodys)]
        assert found[0] == found[1], (method, path, theirs)
        assert found[0][0] in (400, 404)

    assert (await client.get(f"/v1/runs/{run_id}")).json()["status"] == "succeeded"
    assert (await client.get("/v1/inferlets/secret-plan")).json()["id"] == digest


async def test_the_same_bytes_of_two_tenants(
    client_of: ClientOf, client: httpx2.AsyncClient, upload: Upload, services: Any
) -> None:
    """To each they are new, with names of its own; one deletes them, and the other still has them."""
    hostile = client_of("key-of-globex")
    digest = await upload(ECHO, "secret-plan")
    answer = await hostile.post("/v1/inferlets", content=ECHO, headers={"Content-Type": "text/x-python"})
    deleted = await hostile.delete(f"/v1/inferlets/{digest}")
    run = await client.post("/v1/inferlets/secret-plan/runs", json={"input": {"value": 2}})

    assert (answer.status_code, answer.json()["id"], answer.json()["names"]) == (201, digest, [])
    assert deleted.status_code == 200
    assert run.json()["result"] == 2
    await client.delete(f"/v1/inferlets/{digest}")
    assert not services.catalogue.blobs.path("acme", digest).exists()


async def test_the_same_idempotency_key_of_two_tenants(client_of: ClientOf, upload: Upload) -> None:
    """It starts a run of each."""
    clients = [client_of(key) for key in ("key-of-acme", "key-of-globex")]
    for each in clients:
        await upload(ECHO, "echo", each)
    headers = {"Idempotency-Key": "the-same"}
    runs = [(await each.post("/v1/inferlets/echo/runs", json={}, headers=headers)).json() for each in clients]

    assert [run["status"] for run in runs] == ["succeeded"] * 2
    assert runs[0]["id"] != runs[1]["id"]


async def _answer(client: httpx2.AsyncClient, method: str, path: str, body: Any, name: str) -> tuple[Any, ...]:
    """An answer without what differs each time, and without the name that was asked for."""
    given = _filled(body, name)
    response = await client.request(method, path.format(name), json=given)
    headers = {key: value for key, value in response.headers.items() if key not in ("x-request-id", "content-length")}
    return response.status_code, headers, response.text.replace(name, "NAME")


def _filled(body: Any, name: str) -> Any:
    if isinstance(body, dict):
        return {key: _filled(value, name) for key, value in body.items()}
    if isinstance(body, list):
        return [_filled(value, name) for value in body]
    return name if body == "{}" else body
