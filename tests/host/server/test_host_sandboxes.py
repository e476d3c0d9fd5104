from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tartlet import paths
from tartlet.component_limits import ComponentLimits
from tartlet.errors import GuestError, LimitExceededError, ProgramError, RunCancelledError, TartletError
from tartlet.events import Output, RunUsage
from tartlet.server.compile.child import answer
from tartlet.server.compile.messages import CompileJob, CompileLimits
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.processes.opening import open_processes
from tartlet.server.requests import Control, ProgramRef, RunRequest
from tartlet.server.sandboxes import RunHandle, Sandboxes
from tartlet.testing import FakeEngine

pytestmark = [pytest.mark.runner, pytest.mark.asyncio(loop_scope="module")]


def unconfined(job: CompileJob) -> None:
    """These tests go on in this process."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["in process", "in processes"])
async def sandboxes(request: pytest.FixtureRequest) -> AsyncIterator[Sandboxes]:
    """What runs programs on an engine without a model: a host in this process, or two workers."""
    if request.param == "in process":
        engine = FakeEngine()
        async with open_in_process(engine=engine, spares=0) as opened:
            yield opened
        engine.check_integrity()
        engine.close()
        return
    async with open_processes(workers=2, spares=0, fake_engine=True) as pool:
        async with asyncio.timeout(60):
            while not pool.is_ready:
                await asyncio.sleep(0.01)
        yield pool
        async with asyncio.timeout(60):  # it hears of a run's end when the run's reader does
            while (stats := await pool.engine_stats()) is None or stats.runs or stats.pages_held:
                await asyncio.sleep(0.01)


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


async def test_a_program_that_cannot_be_loaded_can_be_replaced(sandboxes: Sandboxes, store_source: Any) -> None:
    """A failure is not remembered."""
    ref = store_source(HELLO + "# moved\n")
    moved = Path(ref.path).rename(ref.path + "-moved")
    with pytest.raises(ProgramError, match="cannot be read"):
        await (await sandboxes.start(_request(ref))).result_json()
    moved.rename(ref.path)

    assert json.loads(await (await sandboxes.start(_request(ref, run_id="run_2"))).result_json()) == {"to": "you"}


@pytest.mark.parametrize("kind", ["component", "source"])
async def test_nobody_hears_where_programs_lie(sandboxes: Sandboxes, tmp_path: Path, kind: Any) -> None:
    """Not when the file is missing, nor when it is something else: clients read these errors."""
    for number, content in enumerate((None, b"neither")):
        for is_compiled in (False, True):
            path = tmp_path / f"{number}{is_compiled}"
            if content is not None:
                path.write_bytes(content)
            ref = ProgramRef(str(number) * 64, str(path), kind, "mine", is_compiled=is_compiled)
            with pytest.raises(TartletError) as error:
                await (await sandboxes.start(_request(ref))).result_json()
            assert str(tmp_path) not in f"{error.value.message} {error.value.hint}"
            assert not is_compiled or error.value.code == "code_missing"


async def test_what_tenants_upload_is_not_compiled_here(sandboxes: Sandboxes, store_source: Any) -> None:
    """Whoever asks for it: only what a compile child has made is loaded."""
    ref = msgspec.structs.replace(store_source(HELLO), tenant="acme")
    with pytest.raises(ProgramError, match="not compiled here"):
        await (await sandboxes.start(_request(ref))).result_json()


async def test_what_a_child_has_made_is_run(
    sandboxes: Sandboxes, store_source: Any, store_component: Any, component: Any
) -> None:
    """Source with its code, and native code, of which nothing else is read."""
    results = []
    for number, ref in enumerate((store_source(HELLO + "# made\n"), store_component(component("", data="[1]")))):
        job = _job(ref)
        compiled = await asyncio.to_thread(answer, job, unconfined)
        assert compiled.compiled is not None
        Path(ref.path).unlink()
        made = msgspec.structs.replace(ref, path=compiled.compiled.code_path, tenant="acme", is_compiled=True)
        run = await sandboxes.start(_request(made, run_id=f"run_{number}"))
        results.append(json.loads(await run.result_json()))

    assert results == [{"to": "you"}, [1]]


async def test_a_flipped_bit_of_what_a_child_has_made(sandboxes: Sandboxes, store_source: Any) -> None:
    """It is noticed, and not run."""
    ref = store_source(HELLO)
    job = _job(ref)
    compiled = (await asyncio.to_thread(answer, job, unconfined)).compiled
    assert compiled is not None
    path = Path(compiled.code_path)
    code = bytearray(path.read_bytes())
    code[len(code) // 2] ^= 1
    path.write_bytes(code)
    made = msgspec.structs.replace(ref, path=str(path), tenant="acme", is_compiled=True)
    with pytest.raises(ProgramError, match="not there any more"):
        await (await sandboxes.start(_request(made))).result_json()


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


async def test_a_result_is_json_whatever_it_was(
    sandboxes: Sandboxes, store_source: Any, store_component: Any, component: Any
) -> None:
    """Half of a surrogate pair stays an escape; what JSON does not have, or is too deep to read, is a failure."""
    run = await sandboxes.start(_request(store_source(HELLO), {"name": "\u00e9"}))
    assert json.loads(await run.result_json()) == {"to": "\u00e9"}
    half = store_source(HELLO.replace('{"to": name}', "chr(0xD800)"))
    assert await (await sandboxes.start(_request(half))).result_json() == r'"\ud800"'

    for number, text in enumerate(("NaN", "[" * 20_000 + "]" * 20_000)):
        run = await sandboxes.start(_request(store_component(component("", data=text)), run_id=f"run_{number}"))
        with pytest.raises(GuestError, match="not JSON"):
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


LONG = """
from tartlet_sdk import inferlet

@inferlet
async def main() -> list:
    return [[]] * 1_000_000
"""


async def test_a_result_that_is_too_long(sandboxes: Sandboxes, store_source: Any) -> None:
    """It is refused by its length, before anybody parses it beside others' runs."""
    run = await sandboxes.start(_request(store_source(LONG), {}))

    with pytest.raises(LimitExceededError) as error:
        await run.result_json()
    assert error.value.limit == "result_bytes"


NAMED = """
from tartlet_sdk import inferlet, run

@inferlet
async def main() -> str:
    return run.info().inferlet
"""


async def test_what_two_tenants_call_the_same(sandboxes: Sandboxes, store_source: Any) -> None:
    """Each run knows what its own tenant calls the program, and nothing of the other's name."""
    program = store_source(NAMED)
    runs = [
        await sandboxes.start(
            RunRequest(f"run_{name}", name, msgspec.structs.replace(program, name=f"{name}/secret-{name}"), "{}", {})
        )
        for name in ("acme", "evil", "acme", "evil")
    ]

    results = [json.loads(await run.result_json()) for run in runs]
    assert results == ["acme/secret-acme", "evil/secret-evil", "acme/secret-acme", "evil/secret-evil"]


def _job(ref: ProgramRef) -> CompileJob:
    folder = paths.tenants_code_folder()
    return CompileJob(
        path=ref.path, kind=ref.kind, folder=str(folder), component=ComponentLimits(), limits=CompileLimits(), parent=0
    )


async def _events(run: RunHandle) -> list[Any]:
    events = []
    while (event := await run.next_event()) is not None:
        events.append(event)
    return events


def _request(program: ProgramRef, input: Any = None, *, run_id: str = "run_1", **others: Any) -> RunRequest:
    others.setdefault("limits", {})
    return RunRequest(run_id, "acme", program, json.dumps(input or {}), **others)
