"""Compiling by children: what comes of good uploads, of hostile ones, and of waits that are given up."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError, ProgramError, TartletError, UnavailableError
from tartlet.runtime.compiled_program import CompiledProgram
from tartlet.server.compile.client import CompileClient
from tartlet.server.compile.messages import CompileLimits
from tartlet.testing import FakeEngine
from tests import hostile_components as hostile

Uploaded = Callable[[bytes], Path]
LIMITS = ComponentLimits()
SLOW = hostile.inferlet_with(hostile.many_calls(1000, 3500))
"""Within all limits of what is in it; takes some ten seconds to compile."""


async def test_what_a_child_compiles_is_there_for_hosts(home: Path, uploaded: Uploaded) -> None:
    """Its facts and counts are told; a host in this process loads the native code without compiling."""
    import tartlet

    compiled = await CompileClient().compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)

    assert (compiled.facts.is_inferlet, compiled.facts.is_controller) == (True, False)
    assert (compiled.counts.functions, compiled.counts.size_bytes) == (2, len(hostile.inferlet()))
    (native,) = home.iterdir()
    steps: list[str] = []
    engine = FakeEngine()
    async with tartlet.Host(engine=engine, progress=lambda task, *_: steps.append(task)) as host:
        digest = hashlib.sha256(hostile.inferlet()).hexdigest()
        program = await host.load(CompiledProgram(native, digest, "component", is_controller=False))
    engine.close()
    assert program.controller is None
    assert steps == []
    assert list(home.iterdir()) == [native]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (hostile.inferlet_with(hostile.functions(262_144)), "too_many_functions"),
        (hostile.inferlet_with(hostile.functions(999_999)), "too_many_functions"),
        (hostile.inferlet_with(hostile.one_function(7_000_000)), "function_too_large"),
        (hostile.multiplied(9, 10), "too_many_instances"),
        (hostile.inferlet_with(hostile.nested(2000)), "nested_too_deep"),
        (hostile.inferlet_with(hostile.memory(65_536)), "too_much_memory"),
        (hostile.inferlet_with(hostile.table(10**9)), "too_many_table_elements"),
        (hostile.many_imports(50_000), "too_many_imports"),
        (bytes(LIMITS.max_size_bytes + 1), "component_too_large"),
        (hostile.inferlet()[:-3], "truncated"),
        (hostile.inferlet() + b"\xeegarbage", "truncated"),
        (b"import os\n", "not_a_component"),
        (hostile.CORE_MODULE, "not_a_component"),
    ],
)
async def test_what_is_refused_by_number(home: Path, uploaded: Uploaded, data: bytes, code: str) -> None:
    """Nothing is compiled: nothing has even been prepared for it."""
    with pytest.raises(InvalidComponentError) as caught:
        await CompileClient().compile(uploaded(data), LIMITS, tenant="a", folder=home)

    assert caught.value.code == code
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (hostile.component(), "missing_export"),
        (hostile.imports_named("\x1b[2J" + "x" * 100_000), "unknown_import"),
        (hostile.exports_named("wasi:cli/run@0.2.0"), "wrong_world"),
        (hostile.doubled_types(5), "wrong_world"),
        (hostile.doubled_types(19, 2), "compile_failed"),
        (hostile.inferlet_with(hostile.functions(10, b"\x02\x00\x6a")), "compile_failed"),
    ],
)
async def test_what_is_refused_by_its_contract(home: Path, uploaded: Uploaded, data: bytes, code: str) -> None:
    """And no native code is left of it."""
    with pytest.raises(InvalidComponentError) as caught:
        await CompileClient().compile(uploaded(data), LIMITS, tenant="a", folder=home)

    assert caught.value.code == code
    assert len(str(caught.value)) < 2000
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (CompileLimits(cpu_s=1), "takes more than 1 seconds of CPU time"),
        (CompileLimits(wall_s=1.5), "takes more than 1.5 seconds"),
        (CompileLimits(memory_bytes=200 << 20), "takes more than 209,715,200 bytes of memory"),
    ],
)
async def test_what_takes_too_much_is_stopped(
    home: Path, uploaded: Uploaded, limits: CompileLimits, message: str
) -> None:
    """By the limit that it exceeds. The loop of the front stays free meanwhile, and the next upload is compiled."""
    client = CompileClient(limits)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    with pytest.raises(InvalidComponentError, match=message) as caught:
        await client.compile(uploaded(SLOW), LIMITS, tenant="a", folder=home)
    counting.cancel()
    assert caught.value.code == "compile_limit"
    assert turns > 1000
    assert _children() == []

    client = CompileClient()
    assert (await client.compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)).facts.is_inferlet


async def test_native_code_that_is_too_large(home: Path, uploaded: Uploaded) -> None:
    """It is not kept, which is told, and leaves nothing behind."""
    client = CompileClient(CompileLimits(file_bytes=10_000))
    with pytest.raises(TartletError, match="cannot be kept: File too large") as caught:
        await client.compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)

    assert caught.value.code == "not_kept"
    assert not list(home.iterdir())


async def test_a_wait_that_is_given_up_ends_the_child(home: Path, uploaded: Uploaded) -> None:
    """At once, and its place is free."""
    client = CompileClient(children=1)
    waiting = asyncio.create_task(client.compile(uploaded(SLOW), LIMITS, tenant="a", folder=home))
    while not _children():
        await asyncio.sleep(0.001)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert _children() == []
    assert (await client.compile(uploaded(hostile.inferlet()), LIMITS, tenant="b", folder=home)).facts.is_inferlet


async def test_a_child_ends_with_its_front(home: Path, uploaded: Uploaded) -> None:
    """Even if the front is killed."""
    program = f"""if True:
        import asyncio
        from pathlib import Path
        from tartlet.component_limits import ComponentLimits
        from tartlet.server.compile.client import CompileClient
        print("ready", flush=True)
        path, folder = Path({str(uploaded(SLOW))!r}), Path("/nowhere")
        asyncio.run(CompileClient().compile(path, ComponentLimits(), tenant="a", folder=folder))
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as front:
        assert front.stdout is not None
        front.stdout.readline()
        while not (children := psutil.Process(front.pid).children()):
            await asyncio.sleep(0.001)
        front.kill()
    psutil.wait_procs(children, timeout=60)

    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)


async def test_one_tenant_s_bombs_do_not_hold_up_another(home: Path, uploaded: Uploaded) -> None:
    """They wait for each other; another's upload is compiled meanwhile. Too many of them are refused."""
    client = CompileClient(children=2, waiting_per_tenant=2)
    first, second, third, fourth = (uploaded(SLOW) for _ in range(4))
    bombs = [
        asyncio.create_task(client.compile(bomb, LIMITS, tenant="bomber", folder=home))
        for bomb in (first, second, third)
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError):
        await client.compile(fourth, LIMITS, tenant="bomber", folder=home)

    assert (await client.compile(uploaded(hostile.inferlet()), LIMITS, tenant="other", folder=home)).facts.is_inferlet
    assert not any(bomb.done() for bomb in bombs)
    for bomb in bombs:
        bomb.cancel()
    await asyncio.gather(*bombs, return_exceptions=True)
    assert _children() == []


async def test_the_same_at_once_is_one_child(home: Path, uploaded: Uploaded) -> None:
    """Of one tenant; another's is its own. Who vanishes takes nothing from those who still wait."""
    client = CompileClient(children=4)
    path, others = uploaded(SLOW), home / "others"
    others.mkdir()
    waiting = [asyncio.create_task(client.compile(path, LIMITS, tenant="a", folder=home)) for _ in range(10)]
    waiting.append(asyncio.create_task(client.compile(path, LIMITS, tenant="b", folder=others)))
    while len(_children()) < 2:
        await asyncio.sleep(0.001)
    for one in waiting[:9]:
        one.cancel()
    await asyncio.wait(waiting[:9])
    begun = {child.pid for child in _children()}
    assert len(begun) == 2
    waiting[9].cancel()
    await asyncio.wait(waiting[9:10])

    assert len({child.pid for child in _children()} & begun) == 1
    waiting[10].cancel()
    await asyncio.wait(waiting)
    assert _children() == []


async def test_all_who_wait_hear_what_came_of_it(home: Path, uploaded: Uploaded) -> None:
    """The facts, or the error; and what is asked for after that is looked at again."""
    client = CompileClient()
    good, bad = uploaded(hostile.inferlet()), uploaded(hostile.inferlet()[:-3])
    compiled = await asyncio.gather(*(client.compile(good, LIMITS, tenant="a", folder=home) for _ in range(3)))
    refused = await asyncio.gather(
        *(client.compile(bad, LIMITS, tenant="a", folder=home) for _ in range(3)), return_exceptions=True
    )

    assert compiled[0] is compiled[1] is compiled[2]
    assert [type(error) for error in refused] == [InvalidComponentError] * 3
    assert await client.compile(good, LIMITS, tenant="a", folder=home) is not compiled[0]


def test_on_the_server_s_own_loop(home: Path, uploaded: Uploaded) -> None:
    """It answers, refuses, stops and gives up there, too."""

    async def use() -> None:
        client = CompileClient(CompileLimits(wall_s=2))
        assert (await client.compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)).facts.is_inferlet
        with pytest.raises(InvalidComponentError, match="2 seconds"):
            await client.compile(uploaded(SLOW), LIMITS, tenant="a", folder=home)
        waiting = asyncio.create_task(client.compile(uploaded(SLOW), LIMITS, tenant="a", folder=home))
        while not _children():
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while _children():  # this loop kills a child that has hardly begun without waiting for it
            await asyncio.sleep(0.001)

    uvloop.run(use())


async def test_a_crash_of_the_compiler(home: Path, uploaded: Uploaded) -> None:
    """It is the upload's error."""
    client = CompileClient()
    waiting = asyncio.create_task(client.compile(uploaded(SLOW), LIMITS, tenant="a", folder=home))
    while not _children():
        await asyncio.sleep(0.001)
    _children()[0].send_signal(11)
    with pytest.raises(InvalidComponentError, match="crashed the compiler \\(SIGSEGV\\)"):
        await waiting


async def test_a_file_that_is_gone(home: Path, tmp_path: Path) -> None:
    """It is told as such."""
    with pytest.raises(ProgramError, match="cannot be read"):
        await CompileClient().compile(tmp_path / "missing", LIMITS, tenant="a", folder=home)


async def test_no_process_for_a_child(home: Path, uploaded: Uploaded, monkeypatch: Any) -> None:
    """The upload is refused for now; it is nobody's fault."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError(-1, "socketpair")

    monkeypatch.setattr("asyncio.create_subprocess_exec", refuse)
    with pytest.raises(UnavailableError, match="no process"):
        await CompileClient().compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)


async def test_a_child_that_cannot_begin(home: Path, uploaded: Uploaded, monkeypatch: Any, caplog: Any) -> None:
    """It is a fault of the server's own, with the reason in its log."""
    monkeypatch.setattr("tartlet.server.compile.client._MODULE", "tartlet.server.compile.missing")
    with pytest.raises(TartletError, match="fault of the server's own"):
        await CompileClient().compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)

    assert "No module named" in caplog.text


async def test_children_get_no_secrets(home: Path, uploaded: Uploaded, tmp_path: Path, monkeypatch: Any) -> None:
    """Of the front's environment they have only what they need."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\nexit 1\n")
    script.chmod(0o700)
    monkeypatch.setenv("TARTLET_DATABASE", "postgresql://secret")
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(TartletError):
        await CompileClient().compile(uploaded(hostile.inferlet()), LIMITS, tenant="a", folder=home)

    environment = (tmp_path / "environment").read_text()
    assert f"TARTLET_HOME={os.environ['TARTLET_HOME']}" in environment
    assert "TARTLET_DATABASE" not in environment


def test_the_front_s_side_loads_no_wasmtime() -> None:
    """Nor torch, nor what tells about components."""
    program = (
        "import sys, tartlet.server.compile.client; print({'wasmtime', 'torch', 'tartlet.wasm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def _children() -> list[psutil.Process]:
    """Compile children of this process."""
    found = []
    for child in psutil.Process(os.getpid()).children():
        with suppress(psutil.Error):
            if "tartlet.server.compile" in child.cmdline():
                found.append(child)
    return found
