"""Compiling and loading the kernels: chosen by CPU, cached, and refused with a reason."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tartlet_engine.kernels import build
from tartlet_engine.kernels.build import INSTRUCTION_SETS, Kernels, KernelsUnavailableError, load_kernels

LOAD = "from tartlet_engine.kernels.build import load_kernels; print(load_kernels().path)"


def start(home: Path, **environment: str) -> subprocess.Popen[str]:
    """Load the kernels in a process of its own, with an empty cache."""
    variables = os.environ | {"TARTLET_HOME": str(home)} | environment
    return subprocess.Popen(
        [sys.executable, "-c", LOAD], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_best_instruction_set_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a wish, the first that the CPU has everything for."""
    monkeypatch.delenv("TARTLET_CPU_KERNELS", raising=False)
    best = next((each.name for each in INSTRUCTION_SETS if each.cpu_flags <= build.cpu_flags()), None)
    if best is None:
        pytest.skip("this CPU has none of the instruction sets")

    assert best == load_kernels().instruction_set


def test_the_environment_can_choose(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """TARTLET_CPU_KERNELS names an instruction set."""
    monkeypatch.setenv("TARTLET_CPU_KERNELS", kernels.instruction_set)

    assert kernels.instruction_set == load_kernels().instruction_set


def test_an_unknown_name_is_refused() -> None:
    """The error says which there are."""
    with pytest.raises(KernelsUnavailableError, match="'mmx', only for avx512_bf16, avx512, avx2"):
        load_kernels("mmx")


def test_another_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what the CPU lacks."""
    monkeypatch.setattr(build, "cpu_flags", lambda: frozenset({"avx2"}))

    with pytest.raises(KernelsUnavailableError, match="the CPU lacks f16c, fma"):
        load_kernels("avx2")


def test_without_a_compiler_the_reason_is_told(tmp_path: Path) -> None:
    """Nothing on the path that compiles C."""
    _, problem = start(tmp_path, PATH=str(tmp_path), CC="").communicate(timeout=60)

    assert "there is no C compiler: none of cc, gcc, clang is on the path" in problem


def test_a_failing_compiler_is_named(tmp_path: Path) -> None:
    """What it said is part of the error, and nothing is left in the cache."""
    compiler = tmp_path / "broken-cc"
    compiler.write_text("#!/bin/sh\necho 'no space for objects' >&2\nexit 1\n")
    compiler.chmod(0o755)
    _, problem = start(tmp_path / "home", CC=str(compiler)).communicate(timeout=60)

    assert "failed to compile the kernels:\nno space for objects" in problem
    assert list((tmp_path / "home" / "kernels").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """It is a reason to run the model without kernels, not a failure of the engine."""
    (tmp_path / "file").write_text("")
    _, problem = start(tmp_path / "file").communicate(timeout=60)

    assert "KernelsUnavailableError: the compiled kernels cannot be kept: " in problem
    assert str(tmp_path / "file") in problem


def test_a_damaged_library_is_compiled_again(tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was cut short would end the process that loads it, one of other bytes might do anything."""
    content = kernels.path.read_bytes()
    (tmp_path / "kernels").mkdir()
    library = tmp_path / "kernels" / kernels.path.name
    compiled = []

    def compile_again(compiler: str, chosen: object, module_name: str, folder: Path) -> Path:
        compiled.append(folder / "new.so")
        compiled[-1].write_bytes(content[: -hashlib.sha256().digest_size])
        return compiled[-1]

    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    monkeypatch.setattr(build, "_compile", compile_again)
    (chosen,) = [each for each in INSTRUCTION_SETS if each.name == kernels.instruction_set]
    module_name = f"_tartlet_kernels_{chosen.name}"
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for damaged in (b"", content[:5000], content[:-1], flipped):
        library.write_bytes(damaged)
        assert build._find_or_compile(chosen, module_name) == library
        assert library.read_bytes() == content
    assert len(compiled) == 4

    build._find_or_compile(chosen, module_name)
    assert len(compiled) == 4, "what is whole is not compiled again"


def test_only_the_module_is_exported(kernels: Kernels) -> None:
    """No function of ours can be mistaken for one of another library."""
    library = ctypes.CDLL(str(kernels.path))

    assert hasattr(library, f"PyInit__tartlet_kernels_{kernels.instruction_set}")
    assert not hasattr(library, "tartlet_compute_step")


@pytest.mark.slow
def test_two_processes_may_compile_at_once(tmp_path: Path) -> None:
    """Both get the library, of which there is one in the end."""
    usable = [each.name for each in INSTRUCTION_SETS if each.cpu_flags <= build.cpu_flags()]
    if not usable:
        pytest.skip("this CPU has none of the instruction sets")
    processes = [start(tmp_path, TARTLET_CPU_KERNELS=usable[-1]) for _ in range(2)]  # what compiles fastest
    paths = {process.communicate(timeout=300)[0].strip() for process in processes}

    assert {str(path) for path in (tmp_path / "kernels").iterdir()} == paths
    assert len(paths) == 1
