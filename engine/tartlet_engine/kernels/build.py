"""Compile the C kernels for one of the instruction sets that this CPU has, and load them.

Compiled once per machine and version: the library's name in the cache holds a digest of the sources, the compiler, its
flags and the CPU's, so a cache that was copied to another machine is not used there. It ends with a digest of itself:
what a crash has left damaged would end the process that loads it, and is compiled again. Needs a C compiler and
Python's headers; whoever calls this falls back on torch where they are missing.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import shutil
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tartlet_engine.cache_folder import cache_folder

SOURCES = Path(__file__).parent

# No -ffast-math and no contraction: the order of a sum and where it rounds are part of the result.
COMPILER_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=off")

CPU_INFO = Path("/proc/cpuinfo")

_log = logging.getLogger("tartlet_engine")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """What a build of the kernels asks of the CPU."""

    name: str
    cpu_flags: frozenset[str]  # as Linux names them
    compiler_flags: tuple[str, ...]


_AVX2 = InstructionSet("avx2", frozenset({"avx2", "fma", "f16c"}), ("-mavx2", "-mfma", "-mf16c"))
_AVX512 = InstructionSet(
    "avx512",
    _AVX2.cpu_flags | {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    (*_AVX2.compiler_flags, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"),
)
_AVX512_BF16 = InstructionSet(
    "avx512_bf16", _AVX512.cpu_flags | {"avx512_bf16"}, (*_AVX512.compiler_flags, "-mavx512bf16")
)

# The best first.
INSTRUCTION_SETS = (_AVX512_BF16, _AVX512, _AVX2)


class KernelsUnavailableError(RuntimeError):
    """The kernels cannot be compiled or run here; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The loaded library: cffi's `ffi`, and `lib` with the functions of interface.h."""

    ffi: Any
    lib: Any
    instruction_set: str
    path: Path


def load_kernels(instruction_set: str | None = None) -> Kernels:
    """Load the kernels, compiling them if this is the first time on this machine.

    Args:
        instruction_set: a name of `INSTRUCTION_SETS`; None: what the environment variable TARTLET_CPU_KERNELS says, or
            else the best that the CPU has.

    Raises:
        KernelsUnavailableError: another kind of CPU, no compiler, no folder to keep the result in, or it failed.

    Cost: some 5 s the first time, milliseconds afterwards. Two processes may both compile; either result is good.
    """
    return _load(_choose(instruction_set or os.environ.get("TARTLET_CPU_KERNELS") or None))


@cache
def _load(chosen: InstructionSet) -> Kernels:
    module_name = f"_tartlet_kernels_{chosen.name}"
    try:
        library = _find_or_compile(chosen, module_name)
    except OSError as error:  # of the folder, or a full disk
        raise KernelsUnavailableError(f"the compiled kernels cannot be kept: {error}") from error
    loader = importlib.machinery.ExtensionFileLoader(module_name, str(library))
    spec = importlib.util.spec_from_file_location(module_name, library, loader=loader)
    assert spec is not None
    try:
        module: Any = importlib.util.module_from_spec(spec)
    except ImportError as error:
        raise KernelsUnavailableError(f"the compiled kernels cannot be loaded: {error}") from error
    return Kernels(module.ffi, module.lib, chosen.name, library)


def _find_or_compile(chosen: InstructionSet, module_name: str) -> Path:
    """Return the library, compiled now if it is not there yet."""
    compiler = _find_compiler()
    folder = cache_folder("kernels")
    library = folder / f"{module_name}-{_digest(compiler, chosen)}.so"
    if not _is_whole(library):
        with tempfile.TemporaryDirectory(prefix=".build.", dir=folder) as build_folder:
            compiled = _compile(compiler, chosen, module_name, Path(build_folder))
            digest = hashlib.sha256(compiled.read_bytes()).digest()
            with compiled.open("ab") as file:
                file.write(digest)  # loaders take no notice of what comes after the sections
            os.replace(compiled, library)
    return library


def _is_whole(library: Path) -> bool:
    """Tell whether the library is there, and is what was compiled. Raises OSError if it cannot be read."""
    try:
        content = library.read_bytes()
    except FileNotFoundError:
        return False
    size = hashlib.sha256().digest_size
    if hashlib.sha256(content[:-size]).digest() == content[-size:]:
        return True
    _log.warning("the compiled kernels in %s are damaged, and are compiled again", library)
    return False


def _choose(name: str | None) -> InstructionSet:
    """Return the instruction set of this name, or the best, if this CPU has it."""
    flags = cpu_flags()
    names = ", ".join(each.name for each in INSTRUCTION_SETS)
    candidates = [each for each in INSTRUCTION_SETS if name in (None, each.name)]
    if not candidates:
        raise KernelsUnavailableError(f"there are no kernels for {name!r}, only for {names}")
    for candidate in candidates:
        if candidate.cpu_flags <= flags:
            return candidate
    missing = ", ".join(sorted(candidates[-1].cpu_flags - flags))
    raise KernelsUnavailableError(f"the CPU lacks {missing}, which the kernels for {candidates[-1].name} use")


@cache
def cpu_flags() -> frozenset[str]:
    """The features of this CPU that the system lets programs use; empty where Linux does not tell."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), frozenset())


def _find_compiler() -> str:
    names = [name for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name]
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        raise KernelsUnavailableError(f"there is no C compiler: none of {', '.join(names)} is on the path")
    return found


def _digest(compiler: str, chosen: InstructionSet) -> str:
    """Digest everything that the compiled library depends on."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    digest = hashlib.sha256(version)
    for path in sorted(SOURCES.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    settings = (*COMPILER_FLAGS, *chosen.compiler_flags, *sorted(cpu_flags()), sysconfig.get_config_var("SOABI") or "")
    digest.update("\0".join(settings).encode())
    return digest.hexdigest()[:24]


def _compile(compiler: str, chosen: InstructionSet, module_name: str, folder: Path) -> Path:
    """Compile all sources and cffi's own into one library in `folder`."""
    import cffi
    from cffi.recompiler import make_c_source

    declarations = (SOURCES / "interface.h").read_text(encoding="utf-8")
    ffi = cffi.FFI()
    ffi.cdef(declarations)
    binding = folder / f"{module_name}.c"
    make_c_source(ffi, module_name, '#include "common.h"', str(binding))
    includes = [f"-I{SOURCES}", f"-I{sysconfig.get_paths()['include']}"]
    flags = [*COMPILER_FLAGS, *chosen.compiler_flags, *includes]

    def compile_one(source: Path) -> str:
        target = folder / f"{source.stem}.o"
        _run([compiler, *flags, "-c", str(source), "-o", str(target)])
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        objects = list(threads.map(compile_one, [binding, *sorted(SOURCES.glob("*.c"))]))
    library = folder / f"{module_name}.so"
    _run([compiler, "-shared", "-pthread", *objects, "-lm", "-o", str(library)])
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        problem = "\n".join(done.stderr.strip().splitlines()[:8])
        raise KernelsUnavailableError(f"{command[0]} failed to compile the kernels:\n{problem}")
