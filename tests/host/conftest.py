"""A host without a model, and small components as text, for the tests of the program side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import wasmtime

from tartlet import sync
from tartlet.testing import FakeEngine

ComponentMaker = Callable[..., bytes]

# The interfaces that a component from text can import: WIT items, and the core functions that they are lowered to.
_INTERFACES = {
    "log": '(export "print" (func (param "text" string)))',
    "events": """
        (export "poll" (func (param "events" (list u32)) (param "timeout-ns" (option u64)) (result (list u32))))
        (export "timer" (func (param "delay-ns" u64) (result u32)))""",
    "contexts": '(export "context" (type (sub resource)))',
    "source": '(export "program" (func (result string)))',
}
_MEMORY = '(memory (core memory $libc "memory"))'
_REALLOC = '(realloc (core func $libc "realloc"))'
_LOWERED = {
    "log": [("print", "(param i32 i32)", f'(canon lower (func $log "print") {_MEMORY})')],
    "events": [
        (
            "poll",
            "(param i32 i32 i32 i64 i32)",
            f'(canon lower (func $events "poll") {_MEMORY} {_REALLOC})',
        ),
        ("timer", "(param i64) (result i32)", '(canon lower (func $events "timer"))'),
    ],
    "contexts": [("drop", "(param i32)", "(canon resource.drop $context)")],
    "source": [],
}
_LIBC = """
    (core module $libc_module
      (memory (export "memory") 2)
      (global $next (mut i32) (i32.const 65536))
      (func (export "realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (local.get $at)))
    (core instance $libc (instantiate $libc_module))"""


def make_component(body: str, *, uses: tuple[str, ...] = (), data: str = "null", functions: str = "") -> bytes:
    """A component that exports `run`.

    Args:
        body: Instructions of `run` in the text format, before those that return `data` as its result.
        uses: The interfaces that it imports, of those above; their functions are `$print`, `$poll`, `$timer`, `$drop`.
        data: What lies at address 64 of the memory, and is returned.
        functions: More core functions.
    """
    imports = "".join(
        f'(import "tartlet:inferlet/{name}@0.1.0" (instance ${name} {_INTERFACES[name]}))\n' for name in uses
    )
    if "contexts" in uses:
        imports += '(alias export $contexts "context" (type $context))\n'
    lowered = [entry for name in uses for entry in _LOWERED[name]]
    definitions = "".join(f"(core func ${name} {lowering})\n" for name, _, lowering in lowered)
    core_imports = "".join(f'(import "host" "{name}" (func ${name} {ty}))\n' for name, ty, _ in lowered)
    exports = "".join(f'(export "{name}" (func ${name}))' for name, _, _ in lowered)
    text = f"""(component
    {imports}{_LIBC}
    {definitions}
    (core module $main_module
      (import "libc" "memory" (memory 1))
      {core_imports}
      {functions}
      (func (export "run") (param i32 i32) (result i32)
        (local $i i32)
        {body}
        (i32.store (i32.const 0) (i32.const 0))
        (i32.store (i32.const 4) (i32.const 64))
        (i32.store (i32.const 8) (i32.const {len(data)}))
        (i32.const 0))
      (data (i32.const 64) "{data}"))
    (core instance $main (instantiate $main_module
      (with "libc" (instance $libc)) (with "host" (instance {exports}))))
    (func (export "run") (param "input" string) (result (result string (error string)))
      (canon lift (core func $main "run") {_MEMORY} {_REALLOC})))"""
    return bytes(wasmtime.wat2wasm(text))


@dataclass(frozen=True)
class FakeHost:
    """A host, and the fake engine under it."""

    host: sync.Host
    engine: FakeEngine

    def run(self, program: Any, input: Any = None, **options: Any) -> Any:
        """What a program returns."""
        return self.host.run(program, input, **options)

    def check_idle(self) -> None:
        """Raise AssertionError unless nothing of any run is left."""
        deadline = time.monotonic() + 5
        while self.host.stats().runs.live and time.monotonic() < deadline:
            time.sleep(0.001)
        self.engine.check_integrity()
        stats = self.host.stats()
        assert (stats.runs.live, stats.engine.runs, stats.engine.contexts, stats.engine.running) == (0, 0, 0, 0)
        assert stats.engine.pages_held == 0


@pytest.fixture(scope="module")
def open_host() -> Iterator[FakeHost]:
    """A host that the tests of a module share."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        yield FakeHost(host, engine)
    engine.close()


@pytest.fixture
def fake(open_host: FakeHost) -> Iterator[FakeHost]:
    """A host on a fake engine, of which the test must leave nothing behind."""
    yield open_host
    open_host.check_idle()


@pytest.fixture(scope="session")
def component() -> ComponentMaker:
    """Makes components from text: `make_component` above."""
    return make_component
