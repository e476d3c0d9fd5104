from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import GuestError, UnavailableError
from tartlet.events import Output
from tartlet.server.failures import to_failure
from tartlet.server.front.errors import ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.openai.answers import EndpointAnswering, Piece, Refusal, events_of
from tartlet.server.front.run_events import Outcome
from tartlet.server.requests import ProgramRef, RunRequest

REQUEST = RunRequest("run_1", "acme", ProgramRef("ab", "/ab", "source", "openai/chat"), "{}", {})


class Told:
    """Plays a run that tells these events. Implements `RunHandle`, and `Sandboxes.start`."""

    run_id = "run_1"

    def __init__(self, *texts: str, result: str = "null") -> None:
        self._events: list[Any] = [Output(text) for text in texts]
        self._result = result

    async def start(self, request: RunRequest) -> Told:
        return self

    async def next_event(self) -> Any:
        return self._events.pop(0) if self._events else None

    async def result_json(self) -> str:
        return self._result

    def cancel(self) -> None:
        pass


async def ended_run(told: Told, **options: Any) -> LiveRun:
    run = LiveRun("acme", "openai/chat", "ab", **options)
    run.finish(await run.drive(told, REQUEST))  # type: ignore[arg-type]
    return run


async def test_lines_are_pieces() -> None:
    """However the output was cut."""
    told = Told('{"index":0,"te', 'xt":"a"}\n{"index":1,"finish":"stop"}\n{"index"', ':0,"call":"f"}\n')
    answering = EndpointAnswering(await ended_run(told), "response_format")

    assert [piece async for piece in answering.pieces()] == [
        Piece(0, "a"),
        Piece(1, finish="stop"),
        Piece(0, call="f"),
    ]


async def test_the_result_is_the_answer() -> None:
    """With all choices."""
    result = (
        '{"choices":[{"text":"a","calls":[],"logprobs":[],"finish":"stop"}],'
        '"usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":2}}'
    )
    answer = await EndpointAnswering(await ended_run(Told(result=result)), "response_format").answer()

    assert answer.choices[0].text == "a"
    assert answer.usage.completion_tokens == 2


async def test_a_refusal_is_an_error() -> None:
    """With the code that clients know, where there is one."""
    told = Told(result='{"error":{"code":"context-overflow","message":"too long","hint":"shorter"}}')
    with pytest.raises(ApiError) as caught:
        await EndpointAnswering(await ended_run(told), "response_format").answer()

    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")
    assert Refusal("quota-exceeded", "too much").to_error("text.format").code == "quota_exceeded"
    assert Refusal("not-found", "no model").to_error("text.format").status == 404
    assert Refusal("unsupported", "no", param="schema").to_error("text.format").param == "text.format"
    assert Refusal("unsupported", "no", param="tools").to_error("text.format").param == "tools"


async def test_what_is_lost_is_an_error() -> None:
    """Text must not be left out because a client reads slowly."""
    run = await ended_run(Told(*["x" * 100] * 20), buffer_bytes=500)
    with pytest.raises(UnavailableError, match="slowly"):
        [event async for event in events_of(run)]


async def test_a_run_that_fails_raises() -> None:
    """What it ended with."""
    run = LiveRun("acme", "openai/chat", "ab")
    run.finish(Outcome("failed", failure=to_failure(GuestError("boo"))))
    with pytest.raises(GuestError, match="boo"):
        await EndpointAnswering(run, "response_format").answer()
