"""Components that are compiled before workers need them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import tartlet
from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.server.compile.client import CompileClient
from tartlet.server.front.compiling import CompilingSandboxes
from tartlet.server.host_sandboxes import HostSandboxes
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.testing import FakeEngine
from tests import hostile_components as hostile

StoreComponent = Callable[[bytes], ProgramRef]


class Steps:
    """Notes what the host in this process compiles itself."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note one step."""
        self.seen.append(task)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TARTLET_HOME in which nothing has been compiled."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def steps() -> Steps:
    """Steps that `compiling`'s host reports."""
    return Steps()


@pytest.fixture
async def compiling(request: pytest.FixtureRequest, steps: Steps) -> AsyncIterator[CompilingSandboxes]:
    """Sandboxes on a host in this process, on an engine without a model; tenant `small` may have one function.

    Nothing has been compiled yet, except for tests with the runner.
    """
    if request.node.get_closest_marker("runner") is None:
        request.getfixturevalue("home")
    engine = FakeEngine()

    async def limits_of(tenant: str) -> ComponentLimits:
        return ComponentLimits(max_functions=1) if tenant == "small" else ComponentLimits()

    async with tartlet.Host(engine=engine, spares=0, progress=steps) as host:
        yield CompilingSandboxes(HostSandboxes(host), CompileClient(), limits_of)
    engine.close()


async def test_an_upload_is_compiled_for_its_runs(
    compiling: CompilingSandboxes, steps: Steps, store_component: StoreComponent, component: Any
) -> None:
    """By a child; whoever runs it compiles nothing. What is wrong with it is told by the upload."""
    program = store_component(component("", data="[1]"))
    facts = await compiling.describe_upload(program, "acme")
    run = await compiling.start(_request(program))

    assert facts.is_inferlet
    assert await run.result_json() == "[1]"
    assert steps.seen == []
    with pytest.raises(InvalidComponentError, match="allowed are 1"):
        await compiling.describe_upload(program, "small")
    with pytest.raises(InvalidComponentError, match="262,146 functions"):
        await compiling.describe_upload(store_component(hostile.inferlet_with(hostile.functions(262_144))), "acme")


async def test_native_code_that_is_gone_is_made_again(
    compiling: CompilingSandboxes, home: Path, steps: Steps, store_component: StoreComponent, component: Any
) -> None:
    """By a child, when a run needs it; and so is that of programs from before the front was started."""
    old = store_component(component("", data="[2]"))
    assert await (await compiling.start(_request(old))).result_json() == "[2]"
    other = store_component(component("", data="[3]"))
    assert await (await compiling.start(_request(other))).result_json() == "[3]"
    for file in (home / "components").iterdir():
        file.unlink()
    await compiling.start(_request(old))

    assert len(list((home / "components").iterdir())) == 1
    assert steps.seen == []


async def test_what_is_there_is_not_looked_at_again(
    compiling: CompilingSandboxes, store_component: StoreComponent, component: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No child is started for it."""
    program = store_component(component("", data="[4]"))
    await compiling.describe_upload(program, "acme")
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)

    assert await (await compiling.start(_request(program))).result_json() == "[4]"


@pytest.mark.runner
async def test_source_is_left_to_whoever_runs_it(
    compiling: CompilingSandboxes, store_source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compiled inside the sandbox."""
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
    program = store_source("from tartlet_sdk import inferlet\n@inferlet\ndef main(n: int):\n    return n\n")

    facts = await compiling.describe_upload(program, "acme")
    assert [parameter.name for parameter in facts.parameters or ()] == ["n"]
    assert await compiling.describe(program) == facts


def _request(program: ProgramRef) -> RunRequest:
    return RunRequest(run_id="run_1", tenant="acme", program=program, input_json="null", limits={})
