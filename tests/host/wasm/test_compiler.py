"""Compiling, and the cache of native code."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from wasmtime import wat2wasm
from wasmtime.component import Component

from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.component_counts import count_component
from tartlet.wasm.sealed_file import SEAL_BYTES
from tartlet.wasm.wasm_engine import WasmEngine
from tests.hostile_components import functions, inferlet_with

COMPONENT = bytes(wat2wasm('(component (core module (func (export "f"))))'))


class Steps:
    """Notes what progress is reported."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, float | None]] = []

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note one step."""
        self.seen.append((task, done, total))


def test_compiled_once(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """What was compiled is loaded the next time, by another compiler too; only compiling reports progress."""
    steps = Steps()
    Compiler(wasm_engine, tmp_path, steps).compile(COMPONENT)
    Compiler(WasmEngine(), tmp_path, steps).compile(COMPONENT)

    assert steps.seen == [("Compiling the component", 0.0, 1.0), ("Compiling the component", 1.0, 1.0)]
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.suffix == ".cwasm"


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_damaged_file(wasm_engine: WasmEngine, tmp_path: Path, damage: bytes | None) -> None:
    """A file that cannot be loaded is replaced by a good one."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path, steps)
    path = compiler.cache_path(COMPONENT)
    compiler.compile(COMPONENT)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    compiler.compile(COMPONENT)
    compiler.compile(COMPONENT)

    assert len(steps.seen) == 4
    assert path.stat().st_size == len(whole)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_file_that_others_may_write(wasm_engine: WasmEngine, tmp_path: Path, mode: int) -> None:
    """A file that others could have written is not run but replaced."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path, steps)
    compiler.compile(COMPONENT)
    compiler.cache_path(COMPONENT).chmod(mode)
    compiler.compile(COMPONENT)

    assert len(steps.seen) == 4
    assert stat.S_IMODE(compiler.cache_path(COMPONENT).stat().st_mode) == 0o600


def test_link_instead_of_a_file(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """A symbolic link is not followed."""
    compiler = Compiler(wasm_engine, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"untouched")
    compiler.cache_path(COMPONENT).symlink_to(elsewhere)
    compiler.compile(COMPONENT)

    assert not compiler.cache_path(COMPONENT).is_symlink()
    assert elsewhere.read_bytes() == b"untouched"


def test_a_flipped_bit(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """Native code that is not what was compiled is not run but replaced, though Wasmtime would load it."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path, steps)
    path = compiler.cache_path(COMPONENT)
    compiler.compile(COMPONENT)
    whole = path.read_bytes()
    at = whole.index(b".text") - 200
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    Component.deserialize_file(wasm_engine.engine, str(path))
    compiler.compile(COMPONENT)

    assert len(steps.seen) == 4
    assert path.read_bytes() == whole


def test_a_file_from_before_there_were_digests(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """It is replaced."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path, steps)
    compiler.compile(COMPONENT)
    path = compiler.cache_path(COMPONENT)
    whole = path.read_bytes()
    path.write_bytes(whole[:-SEAL_BYTES])
    compiler.compile(COMPONENT)

    assert len(steps.seen) == 4
    assert path.read_bytes() == whole


def test_what_is_of_no_use_is_forgotten(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """Once or twice."""
    compiler = Compiler(wasm_engine, tmp_path)
    compiler.compile(COMPONENT)
    compiler.forget(COMPONENT)
    compiler.forget(COMPONENT)

    assert list(tmp_path.iterdir()) == []


def test_modules_are_validated_before(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """A body that is not valid is found without compiling anything."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path, steps)
    good = inferlet_with(functions(10))
    compiler.validate(good, count_component(good, ComponentLimits())[1])
    bad = inferlet_with(functions(10, b"\x02\x00\x6a"))
    with pytest.raises(InvalidComponentError, match="cannot be compiled"):
        compiler.validate(bad, count_component(bad, ComponentLimits())[1])

    assert steps.seen == []


def test_component_that_wasmtime_refuses(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """What Wasmtime refuses is an error with its reason, and leaves no file."""
    with pytest.raises(InvalidComponentError, match="cannot be compiled") as caught:
        Compiler(wasm_engine, tmp_path).compile(COMPONENT[:-1])

    assert caught.value.code == "compile_failed"
    assert list(tmp_path.iterdir()) == []


def test_several_processes(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """Processes that compile the same component at once all succeed and leave one file."""
    program = f"""if True:
        from pathlib import Path
        from tartlet.wasm.compiler import Compiler
        from tartlet.wasm.wasm_engine import process_engine
        for _ in range(5):
            Compiler(process_engine(), Path({str(tmp_path)!r})).compile(bytes.fromhex({COMPONENT.hex()!r}))
            for path in Path({str(tmp_path)!r}).glob("*.cwasm"):
                path.unlink(missing_ok=True)
    """
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    Compiler(wasm_engine, tmp_path).compile(COMPONENT)

    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) <= 1


def test_a_folder_that_cannot_be_written_to(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """What was compiled is used though it cannot be kept: a full disk ends no run."""
    steps = Steps()
    compiler = Compiler(wasm_engine, tmp_path / "absent", steps)
    compiler.compile(COMPONENT)
    compiler.compile(COMPONENT)

    assert len(steps.seen) == 4
    with pytest.raises(FileNotFoundError):
        compiler.compile(COMPONENT, must_keep=True)


def test_the_folder_stays_small(wasm_engine: WasmEngine, tmp_path: Path) -> None:
    """Above the bound, what was used longest ago goes, but nothing that is loaded."""
    components = [COMPONENT, *(bytes(wat2wasm(f"(component (core module $m{n}))")) for n in range(3))]
    compiler = Compiler(wasm_engine, tmp_path, max_bytes=1)
    loaded = compiler.compile(components[0])
    for component in components[1:]:
        compiler.compile(component)

    assert {path for path in tmp_path.iterdir()} == {compiler.cache_path(components[n]) for n in (0, -1)}
    del loaded
    compiler.compile(components[1])
    assert list(tmp_path.iterdir()) == [compiler.cache_path(components[1])]
