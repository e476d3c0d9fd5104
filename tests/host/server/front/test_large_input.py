from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tartlet.server.front.large_input import LEAST_BYTES
from tartlet.server.front.services import Services

pytestmark = pytest.mark.runner

KEEP = """
from tartlet_sdk import inferlet

@inferlet
def main(value: object = None) -> object:
    return value
"""
LARGE = {"text": "é" * LEAST_BYTES, "n": [1.5, None, {"deep": [[]]}]}


@pytest.fixture
async def runs(upload: Any) -> str:
    return f"/v1/inferlets/{await upload(KEEP)}/runs"


@pytest.mark.parametrize("is_ascii", [True, False])
async def test_a_large_input_is_the_same(client: httpx2.AsyncClient, runs: str, is_ascii: bool) -> None:
    """However it is written; the other fields of the request count."""
    body = {"input": {"value": LARGE}, "limits": {"max_cpu_ms": 5000}, "seed": 3}
    answer = await client.post(
        runs, content=json.dumps(body, ensure_ascii=is_ascii, indent=1), headers={"Content-Type": "application/json"}
    )
    assert answer.json()["result"] == LARGE

    body["limits"] = {"max_cpu_ms": 10**9}
    refused = await client.post(runs, json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "limit_too_high")


async def test_what_is_wrong_is_told_as_usual(client: httpx2.AsyncClient, runs: str) -> None:
    """Of a large request, too."""
    text = "x" * LEAST_BYTES
    for body, code in (
        (f'{{"input": "{text}"', "invalid_json"),
        (f'{{"input": ["{text}", NaN]}}', "invalid_request"),
        (f'{{"input": "{text}", "unknown": 1}}', "unknown_parameter"),
        (f'["{text}"]', "invalid_request"),
    ):
        answer = await client.post(runs, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), body[:20]


async def test_a_large_request_that_is_sent_twice(client: httpx2.AsyncClient, runs: str, services: Services) -> None:
    """Starts one run, and is another request than one with another input."""
    headers = {"Idempotency-Key": "one"}
    first, second = [
        (await client.post(runs, json={"input": {"value": LARGE}}, headers=headers)).json() for _ in range(2)
    ]
    other = await client.post(runs, json={"input": {"value": [LARGE]}}, headers=headers)

    assert first["id"] == second["id"]
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_conflict")
