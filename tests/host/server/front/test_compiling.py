"""Programs that are compiled before workers need them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tartlet
from tartlet.component_limits import ComponentLimits
from tartlet.errors import BuildError, InvalidComponentError, ProgramError
from tartlet.server.compile.client import CompileClient
from tartlet.server.front.code_store import CodeStore
from tartlet.server.front.compiling import CompilingSandboxes
from tartlet.server.host_sandboxes import HostSandboxes
from tartlet.server.requests import ProgramRef, RunRequest
from tartlet.testing import FakeEngine
from tests import hostile_components as hostile

StoreProgram = Callable[[Any], ProgramRef]

pytestmark = pytest.mark.runner


@pytest.fixture
def code(tmp_path: Path) -> CodeStore:
    """Where nothing has been compiled yet."""
    return CodeStore(tmp_path / "code", 10**9)


@pytest.fixture
async def compiling(code: CodeStore) -> AsyncIterator[CompilingSandboxes]:
    """Sandboxes on a host in this process, on an engine without a model; tenant `small` may have one function."""
    engine = FakeEngine()

    async def limits_of(tenant: str) -> ComponentLimits:
        return ComponentLimits(max_functions=1) if tenant == "small" else ComponentLimits()

    async with tartlet.Host(engine=engine, spares=0) as host:
        yield CompilingSandboxes(HostSandboxes(host), CompileClient(), limits_of, code)
    engine.close()


async def test_a_component_is_compiled_for_its_runs(
    compiling: CompilingSandboxes, store_component: StoreProgram, component: Any
) -> None:
    """By a child; whoever runs it compiles nothing. What is wrong with it is told by the upload."""
    program = _of("acme", store_component(component("", data="[1]")))
    facts = await compiling.describe(program)
    Path(program.path).unlink()  # so that nobody can compile it
    run = await compiling.start(_request(program))

    assert facts.is_inferlet
    assert await run.result_json() == "[1]"
    small = _of("small", store_component(component("", data="[1]")))
    with pytest.raises(InvalidComponentError, match="allowed are 1"):
        await compiling.describe(small)
    bomb = _of("acme", store_component(hostile.inferlet_with(hostile.functions(262_144))))
    with pytest.raises(InvalidComponentError, match="262,146 functions"):
        await compiling.describe(bomb)


async def test_source_is_compiled_for_its_runs(compiling: CompilingSandboxes, store_source: StoreProgram) -> None:
    """By a child, which parses it, too: it tells parameters, and what is wrong."""
    program = _of("acme", store_source("from tartlet_sdk import inferlet\n@inferlet\ndef main(n: int = 3): return n\n"))
    facts = await compiling.describe(program)
    Path(program.path).unlink()

    assert [parameter.name for parameter in facts.parameters or ()] == ["n"]
    assert await (await compiling.start(_request(program))).result_json() == "3"
    with pytest.raises(BuildError, match="line 1"):
        await compiling.describe(_of("acme", store_source("def main(:\n")))
    with pytest.raises(ProgramError, match="marked with @inferlet"):
        await compiling.describe(_of("acme", store_source("def main(): return 1\n")))


async def test_code_that_is_gone_is_made_again(
    compiling: CompilingSandboxes, code: CodeStore, store_component: StoreProgram, component: Any
) -> None:
    """By a child, when a run needs it; and so is that of programs from before the front was started."""
    old = _of("acme", store_component(component("", data="[2]")))
    assert await (await compiling.start(_request(old))).result_json() == "[2]"
    other = _of("acme", store_component(component("", data="[3]")))
    assert await (await compiling.start(_request(other))).result_json() == "[3]"
    for file in code.folder("acme").iterdir():
        file.unlink()
    await compiling.start(_request(old))

    assert len(list(code.folder("acme").iterdir())) == 1


async def test_what_is_there_is_not_looked_at_again(
    compiling: CompilingSandboxes, store_component: StoreProgram, component: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No child is started for it."""
    program = _of("acme", store_component(component("", data="[4]")))
    await compiling.describe(program)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)

    assert await (await compiling.start(_request(program))).result_json() == "[4]"


async def test_another_tenant_s_upload_of_the_same_is_compiled_too(
    compiling: CompilingSandboxes, code: CodeStore, store_component: StoreProgram, component: Any
) -> None:
    """Nothing is saved by what the first has: the second cannot tell by time that it is there."""
    program = store_component(component("", data="[5]"))
    for tenant in ("acme", "globex"):
        await compiling.describe(_of(tenant, program))
    made = [next(code.folder(tenant).iterdir()) for tenant in ("acme", "globex")]
    await compiling.start(_request(_of("acme", program)))
    made[1].unlink()

    assert code.find(_of("globex", program)) is None
    assert await (await compiling.start(_request(_of("globex", program)))).result_json() == "[5]"


async def test_the_server_s_own_programs_are_left_alone(
    compiling: CompilingSandboxes, store_source: StoreProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who runs them compiles them."""
    monkeypatch.setattr(asyncio, "create_subprocess_exec", None)
    program = store_source("from tartlet_sdk import inferlet\n@inferlet\ndef main(): return 6\n")

    assert await (await compiling.start(_request(program))).result_json() == "6"


def _of(tenant: str, program: ProgramRef) -> ProgramRef:
    return msgspec.structs.replace(program, tenant=tenant)


def _request(program: ProgramRef) -> RunRequest:
    return RunRequest(run_id="run_1", tenant="acme", program=program, input_json="{}", limits={})
