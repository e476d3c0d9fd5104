from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import httpx2
import pytest
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from tartlet.errors import (
    ConfigError,
    ConflictError,
    EngineStoppedError,
    GuestError,
    InvalidComponentError,
    LimitExceededError,
    NotFoundError,
    QuotaError,
    RunCancelledError,
    TartletError,
    UnavailableError,
    WorkerLostError,
)
from tartlet.server.front.app import create_app
from tartlet.server.front.auth import public
from tartlet.server.front.errors import ApiError, error_fields, error_response, json_response, not_found, status_of
from tartlet.server.front.services import Services

router = APIRouter()


class Cat(BaseModel):
    """One kind of item."""

    kind: Literal["cat"]


class Dog(BaseModel):
    """Another."""

    kind: Literal["dog"]


class Body(BaseModel):
    """What `/body` takes."""

    n: int


@router.post("/body")
@public
async def body(body: Body) -> int:
    return body.n


class Strict(BaseModel):
    """What `/strict` takes, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    limits: dict[str, int] = {}
    item: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None


@router.post("/strict")
@public
async def strict(body: Strict) -> int:
    return len(body.limits)


@router.get("/fault")
@public
async def fault() -> None:
    raise RuntimeError("the password is hunter2")


@pytest.fixture
async def failing(services: Services) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(create_app(services, [router]), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://server") as client:
        yield client


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("wrong"), 400),
        (ConfigError("wrong", code="not_found"), 404),
        (InvalidComponentError("wrong"), 400),
        (InvalidComponentError("wrong", code="component_too_large"), 413),
        (GuestError("failed", code="not_found"), 422),
        (LimitExceededError("cpu_limit", limit="max_cpu_ms", used=2, allowed=1), 422),
        (RunCancelledError("cancelled"), 499),
        (UnavailableError("later"), 503),
        (NotFoundError("missing"), 404),
        (ConflictError("taken", code="idempotency_conflict"), 409),
        (QuotaError("queue_full", limit="queue_length", used=65, allowed=64, retry_after_s=2), 429),
        (EngineStoppedError("gone"), 503),
        (WorkerLostError("gone"), 503),
        (TartletError("what?"), 500),
        (ApiError(429, "rate_limit_exceeded", "slowly"), 429),
    ],
)
def test_every_error_has_its_status(error: TartletError, status: int) -> None:
    """The client's faults are 4xx, those of the server 5xx."""
    assert status_of(error) == status


def test_an_error_has_the_shape_of_openai() -> None:
    """With what to do, which OpenAI's has not."""
    response = error_response(ApiError(400, "invalid_request", "n is wrong", hint="Give one.", param="n"))

    assert json.loads(response.body) == {
        "error": {
            "message": "n is wrong",
            "type": "invalid_request_error",
            "param": "n",
            "code": "invalid_request",
            "hint": "Give one.",
        }
    }


def test_a_limit_is_told_with_its_numbers() -> None:
    """And with how to ask for more, by this interface."""
    fields = error_fields(LimitExceededError("token_budget", limit="max_tokens", used=12, allowed=10))

    assert (fields["limit"], fields["used"], fields["allowed"]) == ("max_tokens", 12, 10)
    assert '"max_tokens"' in fields["hint"]
    assert "tartlet.Limits" not in fields["hint"]


def test_when_to_come_back_is_told() -> None:
    """Rounded up, so that who obeys is not too early."""
    assert error_response(ApiError(429, "x", "slowly", retry_after_s=1.2)).headers["retry-after"] == "2"
    assert "retry-after" in error_response(UnavailableError("later")).headers


def test_long_messages_are_cut() -> None:
    """A program cannot make answers of any size by failing."""
    assert len(error_fields(GuestError("x" * 10**6))["message"]) == 4000


def test_anything_can_be_sent() -> None:
    """Text that UTF-8 does not have is escaped."""
    assert json.loads(json_response({"text": "\ud800"}).body) == {"text": "\ud800"}


def test_what_is_not_there_is_named() -> None:
    """A name of any length does not come back whole."""
    error = not_found("run", "r" * 1000)

    assert status_of(error) == 404
    assert len(error.message) < 300


@pytest.mark.parametrize(
    ("content", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"", "invalid_request", None),
        (b"{}", "invalid_request", "n"),
        (b'{"n": "secret"}', "invalid_request", "n"),
        (b'{"n": ' + b"[" * 100_000, "invalid_json", None),
        (b'{"n": ' + b"9" * 5000 + b"}", "invalid_json", None),
        (b'{"n": "\xff"}', "invalid_json", None),
    ],
)
async def test_what_is_wrong_with_a_body_is_named(
    failing: httpx2.AsyncClient, content: bytes, code: str, param: str | None
) -> None:
    """But what was sent is not repeated."""
    response = await failing.post("/body", content=content, headers={"Content-Type": "application/json"})
    error = response.json()["error"]

    assert response.status_code == 400
    assert (error["code"], error["param"]) == (code, param)
    assert "secret" not in response.text


async def test_addresses_and_methods_that_are_not_there(failing: httpx2.AsyncClient) -> None:
    """They are answered in the same shape."""
    missing, wrong = await failing.get("/nothing"), await failing.delete("/body")

    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"


async def test_a_fault_of_ours_tells_nothing(failing: httpx2.AsyncClient) -> None:
    """Only the request's id, under which the log has it."""
    response = await failing.get("/fault", headers={"x-request-id": "abc"})

    assert response.status_code == 500
    assert "hunter2" not in response.text
    assert "abc" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"limit": {}}, "unknown_parameter", "there is no parameter 'limit' here"),
        ({"item": {"kind": "secret"}}, "invalid_request", "item: 'kind' must be one of 'cat', 'dog'"),
    ],
)
async def test_what_is_wrong_is_told_in_plain_words(
    failing: httpx2.AsyncClient, body: dict[str, Any], code: str, message: str
) -> None:
    """Not in those of a library, and without what was sent."""
    response = await failing.post("/strict", json=body)
    error = response.json()["error"]

    assert (response.status_code, error["code"], error["message"]) == (400, code, message)


async def test_a_body_that_is_not_said_to_be_json(failing: httpx2.AsyncClient) -> None:
    """As `curl -d` sends it: the answer says which header is missing."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    response = await failing.post("/strict", content=b'{"limits": {}}', headers=form)

    assert response.status_code == 415
    assert "Content-Type: application/json" in response.json()["error"]["hint"]


async def test_an_address_that_is_not_there(failing: httpx2.AsyncClient) -> None:
    """The answer says where the description is."""
    assert "/openapi.json" in (await failing.get("/v1/nothing")).json()["error"]["hint"]
