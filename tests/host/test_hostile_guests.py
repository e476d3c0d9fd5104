"""Programs that mean harm, each beside one that behaves: they end by name, and the neighbour goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import tartlet
from tartlet import Limits, Output, sync
from tartlet.runtime.pacing import MAX_WINDOWS, WINDOW
from tartlet.testing import FakeEngine
from tartlet_engine.api import Command, Fence, OpenRun

pytestmark = pytest.mark.runner

NEIGHBOUR = """
from tartlet_sdk import Model, inferlet
@inferlet
async def main():
    context = Model.default().context()
    context.fill("x")
    async for chunk in context.generate():
        print(chunk.text, end="", flush=True)
"""
POLL_NOTHING = "(call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i64.const {}) (i32.const 16))"
LIMITS = Limits(
    max_memory_bytes=64 << 20,
    max_cpu_ms=300,
    max_host_calls=50_000,
    max_handles=100,
    max_output_bytes=10_000,
)

COMPONENTS: dict[str, tuple[dict[str, Any], str]] = {
    "endless loop": ({"body": "(loop $l (br $l))"}, "cpu_limit"),
    "memory bomb": (
        {"body": "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable"},
        "memory_limit",
    ),
    "deep recursion": ({"body": "(call $r)", "functions": "(func $r (call $r))"}, "trap"),
    "trap": ({"body": "unreachable"}, "trap"),
    "sleep for an hour": ({"body": POLL_NOTHING.format(3600 * 10**9), "uses": ("events",)}, "deadline_exceeded"),
    "wait for ever": ({"body": POLL_NOTHING.replace("1) (i64", "0) (i64").format(0), "uses": ("events",)}, "deadlock"),
    "million host calls": (
        {"body": "(loop $l (call $print (i32.const 0) (i32.const 0)) (br $l))", "uses": ("log",)},
        "host_call_limit",
    ),
    "forged event": (
        {
            "body": "(i32.store (i32.const 32) (i32.const 7))"
            "(call $poll (i32.const 32) (i32.const 1) (i32.const 0) (i64.const 0) (i32.const 16))",
            "uses": ("events",),
        },
        "invalid_handle",
    ),
    "forged context": ({"body": "(call $drop (i32.const 5))", "uses": ("contexts",)}, "invalid_handle"),
    "handle flood": (
        {"body": "(loop $l (drop (call $timer (i64.const 1000000000000))) (br $l))", "uses": ("events",)},
        "handle_limit",
    ),
    "output flood": (
        {"body": "(loop $l (call $print (i32.const 64) (i32.const 4)) (br $l))", "uses": ("log",)},
        "output_limit",
    ),
    "text that is not UTF-8": (
        {
            "body": "(i32.store (i32.const 32) (i32.const -1)) (call $print (i32.const 32) (i32.const 4))",
            "uses": ("log",),
        },
        "trap",
    ),
    "text outside the memory": ({"body": "(call $print (i32.const 32) (i32.const -1))", "uses": ("log",)}, "trap"),
    "result that is not JSON": ({"body": "", "data": "garbage"}, "guest_error"),
}
HEAD = "import json, os, sys, time, asyncio\nfrom tartlet_sdk import *\n@inferlet\nasync def main():\n"
SOURCES = {
    "endless loop": ("while True: pass", "cpu_limit"),
    "loop that catches everything": (
        "while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "cpu_limit",
    ),
    "loop in C": ("sum(range(10 ** 12))", "cpu_limit"),
    "memory bomb": ("hoard = []\n    while True: hoard.append(bytearray(1 << 20))", "memory_limit"),
    "one huge object": ("bytearray(1 << 30)", "memory_limit"),
    "recursion": ("def f(): f()\n    f()", "guest_error"),
    "recursion in C": ("deep = []\n    for _ in range(10 ** 5): deep = [deep]\n    json.dumps(deep)", "trap"),
    "exception": ("{}['x']", "guest_error"),
    "exit": ("os._exit(1)", "guest_error"),
    "sleep for an hour": ("time.sleep(3600)", "deadline_exceeded"),
    "asyncio sleep for an hour": ("await asyncio.sleep(3600)", "deadline_exceeded"),
    "deadlock": ("await asyncio.Event().wait()", "guest_error"),
    "output flood": ("while True: print('x' * 100)", "output_limit"),
    "result that is not JSON": ("return object()", "guest_error"),
    "too many contexts": ("hoard = [Model.default().context() for _ in range(101)]", "handle_limit"),
}


@pytest.fixture(scope="module")
def busy() -> Iterator[tuple[sync.Host, FakeEngine, Any]]:
    """A host whose engine takes a millisecond a step, and a program that generates without an end."""
    engine = FakeEngine(lambda prompt: "y" * 10**7, token_delay_s=0.001, context_len=10**7, num_pages=10**6)
    with sync.Host(engine=engine) as host:
        yield host, engine, host.load(NEIGHBOUR)
    engine.close()


def run_beside_a_neighbour(busy: tuple[sync.Host, FakeEngine, Any], program: Any, code: str) -> tartlet.TartletError:
    """How a program ends, and that its neighbour's tokens come before, meanwhile and after."""
    host, engine, neighbour = busy
    good = host.start(neighbour)
    assert isinstance(next(good), Output)

    limits = replace(LIMITS, max_wall_ms=200) if code == "deadline_exceeded" else LIMITS
    run = host.start(program, limits=limits)
    with pytest.raises(tartlet.TartletError) as caught:
        run.result()

    tokens_at_its_end = good.usage.generated_tokens
    while good.usage.generated_tokens < tokens_at_its_end + 5:
        assert isinstance(next(good), Output)
    good.cancel()
    with pytest.raises(tartlet.RunCancelledError):
        good.result()
    engine.check_integrity()
    assert engine.stats().pages_held == 0
    return caught.value


@pytest.mark.parametrize("name", COMPONENTS)
def test_hostile_component(busy: Any, component: Any, name: str) -> None:
    """Each ends with its own named error."""
    options, code = COMPONENTS[name]

    error = run_beside_a_neighbour(busy, component(**options), code)

    assert error.code == code, error


@pytest.mark.parametrize("name", SOURCES)
def test_hostile_python(busy: Any, name: str) -> None:
    """Each ends with its own named error, and Python's own errors come with the traceback."""
    body, code = SOURCES[name]

    error = run_beside_a_neighbour(busy, f"{HEAD}    {body}\n", code)

    assert error.code == code, error
    if code == "guest_error" and name not in ("deadlock", "exit", "result that is not JSON"):
        assert 'File "main.py", line' in str(error)


class StuckEngine(FakeEngine):
    """Carries out nothing of the runs that are begun while it is stuck."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_stuck = False
        self.stuck: list[tuple[int, Command]] = []
        self._stuck_runs: set[int | None] = set()

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        if self.is_stuck and any(isinstance(command, OpenRun) for command in commands):
            self._stuck_runs.add(run_id)
        if run_id in self._stuck_runs:
            assert run_id is not None
            self.stuck += [(run_id, command) for command in commands]
        else:
            super().submit(commands, run_id)

    def go_on(self) -> None:
        """Carry out what has come so far."""
        stuck, self.stuck = self.stuck, []
        for run_id, command in stuck:
            super().submit([command], run_id)


FLOODS = {
    "forks": "context.fork().close()",
    "fills": "context.fill('x' * 4000); context.truncate(0)",
    "contexts": "hoard.append(context.fork())",
}


@pytest.mark.parametrize("name", FLOODS)
def test_commands_that_come_faster_than_the_engine_does_them(name: str) -> None:
    """The program is held: what waits for the engine is bounded, and goes on as the engine does; others go on."""
    engine = StuckEngine(lambda prompt: "y" * 10**7, token_delay_s=0.001, context_len=10**6, num_pages=10**6)
    body = f"hoard = []; context = Model.default().context(); context.fill('x')\n    while True: {FLOODS[name]}"
    with sync.Host(engine=engine) as host:
        good = host.start(NEIGHBOUR)
        next(good)
        engine.is_stuck = True
        run = host.start(f"{HEAD}    {body}\n", limits=replace(LIMITS, max_cpu_ms=60_000, max_handles=None))
        for _ in range(3):
            # The last command of a run that is held is a fence.
            while num_fences(engine) < MAX_WINDOWS or not isinstance(engine.stuck[-1][1], Fence):
                assert isinstance(next(good), Output)
            before = list(engine.stuck)
            for _ in range(20):
                assert isinstance(next(good), Output)
            assert engine.stuck == before
            assert len(before) <= MAX_WINDOWS * (WINDOW + 10)
            engine.go_on()
        run.cancel()
        with pytest.raises(tartlet.RunCancelledError):
            run.result()
        engine.go_on()
        good.cancel()
    engine.check_integrity()
    engine.close()


def num_fences(engine: StuckEngine) -> int:
    return sum(isinstance(command, Fence) for _, command in engine.stuck)


def test_the_neighbours_tokens_come_while_one_spins(busy: Any, component: Any) -> None:
    """During 300 ms of a spinning program, the neighbour gets its tokens, one a millisecond."""
    host, _, neighbour = busy
    good = host.start(neighbour)
    next(good)
    before = good.usage.generated_tokens

    with pytest.raises(tartlet.LimitExceededError):
        host.run(component("(loop $l (br $l))"), limits=LIMITS)

    assert good.usage.generated_tokens > before + 10
    good.cancel()
