from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tartlet.errors import GuestError, LimitExceededError, ProgramError, RunCancelledError
from tartlet.events import Output, RunUsage
from tartlet.server.requests import Control, ProgramRef, RunRequest
from tartlet.server.sandboxes import RunHandle, Sandboxes

pytestmark = pytest.mark.runner

HELLO = """
from tartlet_sdk import inferlet

@inferlet
async def main(name: str = "you") -> dict:
    print("hello", name)
    return {"to": name}
"""


async def test_a_run_is_told_as_it_goes(sandboxes: Sandboxes, store_source: Any) -> None:
    """Its id is the caller's; its events end with the usage; its result is JSON text."""
    run = await sandboxes.start(_request(store_source(HELLO), {"name": "Ada"}))

    events = await _events(run)
    assert run.run_id == "run_1"
    assert "".join(event.text for event in events if isinstance(event, Output)) == "hello Ada\n"
    assert isinstance(events[-1], RunUsage)
    assert json.loads(await run.result_json()) == {"to": "Ada"}


async def test_what_a_program_is(sandboxes: Sandboxes, store_source: Any, store_component: Any, component: Any) -> None:
    """Source by its text, a component by what it imports."""
    facts = await sandboxes.describe(store_source(HELLO))
    assert [parameter.name for parameter in facts.parameters or ()] == ["name"]

    facts = await sandboxes.describe(store_component(component("", uses=("events",))))
    assert facts.imports == ("tartlet:inferlet/events@0.1.0",)
    assert (facts.is_inferlet, facts.is_controller) == (True, False)


async def test_a_program_that_cannot_be_loaded_can_be_replaced(sandboxes: Sandboxes, store_source: Any) -> None:
    """A failure is not remembered."""
    ref = store_source(HELLO)
    missing = ProgramRef(ref.digest, ref.path + "-not", ref.kind, ref.name)
    with pytest.raises(ProgramError, match="cannot be read"):
        await sandboxes.describe(missing)

    assert (await sandboxes.describe(ref)).is_inferlet


async def test_limits_cancel_and_failures_are_the_run_s(sandboxes: Sandboxes, store_source: Any) -> None:
    """Each ends with its own error."""
    forever = store_source(HELLO.replace('print("hello", name)', "while True: pass"))
    run = await sandboxes.start(_request(forever, limits={"max_cpu_ms": 50}))
    with pytest.raises(LimitExceededError):
        await run.result_json()

    run = await sandboxes.start(_request(forever, run_id="run_2"))
    run.cancel()
    with pytest.raises(RunCancelledError):
        await run.result_json()

    run = await sandboxes.start(_request(store_source(HELLO), {"nobody": 1}, run_id="run_3"))
    with pytest.raises(GuestError):
        await run.result_json()


async def test_a_controller_runs_by_itself_or_is_asked_for(sandboxes: Sandboxes, store_source: Any) -> None:
    """With `control` set it steers a generation; named, an inferlet finds it, and no other."""
    controller = store_source("from tartlet_sdk import Controller\nclass C(Controller): ...\n")
    run = await sandboxes.start(_request(controller, control=Control("Once", max_tokens=3)))
    assert json.loads(await run.result_json())["sequences"][0]["tokens"] == 3

    asking = store_source("""
from tartlet_sdk import Model, inferlet

@inferlet
async def main(controller: str) -> int:
    context = Model.default().context()
    context.fill("Once")
    draft = await context.generate(controller=controller, max_tokens=2)
    return len(draft.tokens)
""")
    run = await sandboxes.start(_request(asking, {"controller": "mine"}, programs={"mine@1": controller}))
    assert json.loads(await run.result_json()) == 2
    run = await sandboxes.start(_request(asking, {"controller": "mine"}, run_id="run_2"))
    with pytest.raises(GuestError, match="mine"):
        await run.result_json()


async def test_many_load_a_program_once(sandboxes: Sandboxes, store_source: Any) -> None:
    """All who come meanwhile wait for the same."""
    ref = store_source(HELLO)
    runs = await asyncio.gather(*(sandboxes.start(_request(ref, run_id=f"run_{number}")) for number in range(8)))

    assert [json.loads(await run.result_json()) for run in runs] == [{"to": "you"}] * 8
    assert sandboxes.num_live_runs == 0


async def _events(run: RunHandle) -> list[Any]:
    events = []
    while (event := await run.next_event()) is not None:
        events.append(event)
    return events


def _request(program: ProgramRef, input: Any = None, *, run_id: str = "run_1", **others: Any) -> RunRequest:
    others.setdefault("limits", {})
    return RunRequest(run_id, "acme", program, json.dumps(input or {}), **others)
