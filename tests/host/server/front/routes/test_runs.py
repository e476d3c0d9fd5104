from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tartlet.server.front.services import Services
from tests.host.server.front.conftest import ECHO, ENDLESS

pytestmark = pytest.mark.runner

CHATTY = """
from tartlet_sdk import inferlet

@inferlet
def main(n: int) -> int:
    for i in range(n):
        print("x" * 1000)
        if i % 8 == 7:
            import time
            time.sleep(0.001)
    return n
"""


def events_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


async def until_none_lives(services: Services) -> None:
    while services.runs.num_live:
        await asyncio.sleep(0.01)


@pytest.fixture
async def echo(upload: Any) -> str:
    await upload(ECHO, "echo@1.0")
    return "/v1/inferlets/echo/runs"


@pytest.fixture
async def endless(upload: Any) -> str:
    await upload(ENDLESS, "endless")
    return "/v1/inferlets/endless/runs"


async def test_a_run_that_is_waited_for(client: httpx2.AsyncClient, echo: str) -> None:
    """The answer has its result and what it used; so has the record."""
    run = (await client.post(echo, json={"input": {"value": [1, "é"]}})).json()
    kept = (await client.get(f"/v1/runs/{run['id']}")).json()

    assert (run["status"], run["result"], run["error"]) == ("succeeded", [1, "é"], None)
    assert run["usage"]["host_calls"] > 0
    assert kept == run


async def test_a_run_that_fails(client: httpx2.AsyncClient, echo: str) -> None:
    """The request went well; the run did not, and says why."""
    response = await client.post(echo, json={"input": {"value": "fail"}})
    run = response.json()

    assert response.status_code == 200
    assert (run["status"], run["error"]["code"], run["error"]["type"]) == ("failed", "guest_error", "run_error")
    assert "as asked" in run["error"]["message"]


async def test_a_limit_that_is_exceeded(client: httpx2.AsyncClient, upload: Any) -> None:
    """It is told with its numbers."""
    await upload(CHATTY, "chatty")
    body = {"input": {"n": 50}, "limits": {"max_output_bytes": 5000}}
    error = (await client.post("/v1/inferlets/chatty/runs", json=body)).json()["error"]

    assert (error["code"], error["limit"], error["allowed"]) == ("output_limit", "max_output_bytes", 5000)
    assert error["used"] > 5000


@pytest.mark.parametrize("by", ["body", "header"])
async def test_a_run_that_is_streamed(client: httpx2.AsyncClient, echo: str, by: str) -> None:
    """Events as they come, each with its number, and the end."""
    headers = {"Accept": "text/event-stream"} if by == "header" else {}
    body = {"input": {"value": 1}} | ({"stream": True} if by == "body" else {})
    response = await client.post(echo, json=body, headers=headers)
    events = events_in(response.text)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert [event["type"] for event in events] == ["started", "output", "usage", "finished"]
    assert events[1]["text"] == "hello\n"
    assert (events[-1]["run"]["status"], events[-1]["run"]["result"]) == ("succeeded", 1)
    assert "id: 1\nevent: output\n" in response.text


async def test_a_run_that_is_left_alone(client: httpx2.AsyncClient, endless: str, services: Services) -> None:
    """It goes on, can be found and listed, and cancelled."""
    started = await client.post(endless, json={"wait": False})
    run = started.json()
    listed = (await client.get("/v1/runs?status=running")).json()["data"]
    gone = await client.delete(f"/v1/runs/{run['id']}")

    assert (started.status_code, run["status"]) == (202, "running")
    assert started.headers["location"] == f"/v1/runs/{run['id']}"
    assert [each["id"] for each in listed] == [run["id"]]
    assert (gone.json()["status"], gone.json()["error"]["code"]) == ("cancelled", "cancelled")
    assert services.runs.num_live == 0
    assert (await client.delete(f"/v1/runs/{run['id']}")).json() == gone.json()


async def test_reattaching(client: httpx2.AsyncClient, echo: str) -> None:
    """What was missed is replayed, from any event on."""
    run = (await client.post(echo, json={})).json()
    path = f"/v1/runs/{run['id']}/events"
    whole = events_in((await client.get(path)).text)
    rest = events_in((await client.get(path, headers={"Last-Event-ID": "1"})).text)

    assert [event["type"] for event in whole] == ["started", "output", "usage", "finished"]
    assert [event["type"] for event in rest] == ["usage", "finished"]
    assert events_in((await client.get(path + "?after=2")).text) == rest[-1:]
    assert (await client.get(path, headers={"Last-Event-ID": "x"})).status_code == 400


async def test_what_cannot_be_replayed_is_told(
    client: httpx2.AsyncClient, upload: Any, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that says more than is kept."""
    monkeypatch.setattr(services.runs, "_buffer_bytes", 2048)
    await upload(CHATTY, "chatty")
    run = (await client.post("/v1/inferlets/chatty/runs", json={"input": {"n": 200}})).json()
    events = events_in((await client.get(f"/v1/runs/{run['id']}/events")).text)

    assert [event["type"] for event in events[:2]] == ["started", "dropped"]
    assert events[1]["first"] == 1
    assert events[2]["seq"] == events[1]["last"] + 1


async def test_an_ended_run_that_is_not_kept(client: httpx2.AsyncClient, echo: str, services: Services) -> None:
    """Its end is on record all the same."""
    run = (await client.post(echo, json={"input": {"value": 2}})).json()
    services.runs._ended.clear()
    (event,) = events_in((await client.get(f"/v1/runs/{run['id']}/events")).text)

    assert (event["type"], event["run"]["result"]) == ("finished", 2)
    assert (await client.get(f"/v1/runs/{run['id']}")).json()["result"] == 2


async def test_an_idempotency_key(client: httpx2.AsyncClient, client_of: Any, echo: str, services: Services) -> None:
    """The same request starts one run, also when its run is not kept any more; another one is refused."""
    headers = {"Idempotency-Key": "k1"}
    first = (await client.post(echo, json={"input": {"value": 1}}, headers=headers)).json()
    again = (await client.post(echo, json={"input": {"value": 1}}, headers=headers)).json()
    streamed = await client.post(echo, json={"input": {"value": 1}, "stream": True}, headers=headers)
    services.runs._ended.clear()
    later = (await client.post(echo, json={"input": {"value": 1}}, headers=headers)).json()
    other = await client.post(echo, json={"input": {"value": 2}}, headers=headers)

    assert first["id"] == again["id"] == later["id"] == events_in(streamed.text)[-1]["run"]["id"]
    assert later["result"] == 1
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
    assert len((await client.get("/v1/runs")).json()["data"]) == 1


@pytest.mark.parametrize(("by", "is_anew"), [("client", True), ("shutdown", True), ("request", False)])
async def test_the_idempotency_key_of_a_cancelled_run(
    client: httpx2.AsyncClient, endless: str, services: Services, by: Any, is_anew: bool
) -> None:
    """Who lost the connection, or was turned away, may ask again; a run that somebody has cancelled stays so."""
    request = {"json": {"wait": False}, "headers": {"Idempotency-Key": "k3"}}
    first = (await client.post(endless, **request)).json()
    services.runs.find("acme", first["id"]).cancel(by=by)
    await until_none_lives(services)
    again = (await client.post(endless, **request)).json()

    assert (again["id"] != first["id"]) is is_anew
    assert again["status"] == ("running" if is_anew else "cancelled")


async def test_requests_with_one_key_at_once(client: httpx2.AsyncClient, echo: str) -> None:
    """They get the same run."""
    headers = {"Idempotency-Key": "k2"}
    answers = await asyncio.gather(*(client.post(echo, json={}, headers=headers) for _ in range(5)))

    assert len({answer.json()["id"] for answer in answers}) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"unknown": 1},
        {"limits": {"max_tokens": -1}},
        {"limits": {"max_tokens": "many"}},
        {"limits": {"max_tokns": 1}},
        {"seed": -1},
        {"seed": 2**64},
        {"programs": ["nobody"]},
        {"programs": ["a"] * 17},
        {"control": {"prompt": 5}},
    ],
)
async def test_wrong_requests(client: httpx2.AsyncClient, echo: str, services: Services, body: dict[str, Any]) -> None:
    """They are refused before anything is started."""
    response = await client.post(echo, json=body)

    assert response.status_code in (400, 404)
    assert (await client.get("/v1/runs")).json()["data"] == []


async def test_numbers_that_json_does_not_have(client: httpx2.AsyncClient, echo: str) -> None:
    """Python would read them; programs in other languages would not."""
    response = await client.post(
        echo, content='{"input": {"value": NaN}}', headers={"Content-Type": "application/json"}
    )

    assert response.status_code == 400


async def test_other_tenants_runs_are_not_there(client: httpx2.AsyncClient, client_of: Any, endless: str) -> None:
    """By any address."""
    globex = client_of("key-of-globex")
    run = (await client.post(endless, json={"wait": False})).json()
    answers = [
        await globex.get(f"/v1/runs/{run['id']}"),
        await globex.get(f"/v1/runs/{run['id']}/events"),
        await globex.delete(f"/v1/runs/{run['id']}"),
        await globex.get(f"/v1/runs?after={run['id']}"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    assert (await globex.get("/v1/runs")).json()["data"] == []
    assert (await client.get(f"/v1/runs/{run['id']}")).json()["status"] == "running"


@pytest.mark.parametrize("body", [{}, {"stream": True}])
async def test_a_client_that_vanishes_ends_its_run(
    exchange: Any, endless: str, services: Services, client: httpx2.AsyncClient, body: dict[str, Any]
) -> None:
    """Whether it waits or streams; the reason is on record."""
    request = exchange("POST", endless, json_body=body)
    while not services.runs.num_live:
        await asyncio.sleep(0.01)
    if body:
        await request.hear()
    request.vanish()
    await until_none_lives(services)
    await asyncio.wait_for(request.task, 10)
    (run,) = (await client.get("/v1/runs")).json()["data"]

    assert run["status"] == "cancelled"
    assert "gone" in run["error"]["message"]


async def test_a_detached_run_outlives_its_client(exchange: Any, endless: str, services: Services) -> None:
    """It goes on until somebody cancels it."""
    request = exchange("POST", endless, json_body={"stream": True, "detached": True})
    await request.hear()
    request.vanish()
    await asyncio.wait_for(request.task, 10)

    assert services.runs.num_live == 1


async def test_who_reattached_keeps_a_run_alive(exchange: Any, endless: str, services: Services) -> None:
    """The one who started it may go; with the last, it ends."""
    request = exchange("POST", endless, json_body={"stream": True})
    await request.hear()
    (run,) = services.runs.live_of("acme")
    other = exchange("GET", f"/v1/runs/{run.run_id}/events")
    await other.hear()
    request.vanish()
    await asyncio.wait_for(request.task, 10)
    assert not run.has_ended
    other.vanish()
    await until_none_lives(services)

    assert run.has_ended


async def test_a_server_that_is_shut_down_starts_nothing(
    client: httpx2.AsyncClient, echo: str, services: Services
) -> None:
    """It says so, and when to ask again."""
    await services.runs.drain(0)
    response = await client.post(echo, json={})

    assert (response.status_code, response.json()["error"]["code"]) == (503, "shutting_down")
    assert "retry-after" in response.headers


async def test_a_generation_that_a_controller_steers(client: httpx2.AsyncClient, upload: Any) -> None:
    """A controller is run with a prompt instead of an input."""
    shout = """
from tartlet_sdk import Branch, Controller, Model

class Shout(Controller):
    def step(self, sequence, info):
        if len(sequence.generated) < 3:
            return Branch.force(Model.default().tokenize(" HEY!"))
        return []
"""
    await upload(shout, "shout")
    run = (await client.post("/v1/inferlets/shout/runs", json={"control": {"prompt": "Hello,"}})).json()

    assert run["status"] == "succeeded", run
    assert run["result"]["sequences"][0]["text"].startswith(" HEY!")
