"""What is installed here, and does it work: the findings behind `tartlet doctor`."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import tartlet
from tartlet import models, paths
from tartlet.errors import TartletError
from tartlet.languages import javascript, python
from tartlet.languages.registry import LANGUAGES
from tartlet.progress import Progress, silent
from tartlet.wasm import compiler

SELF_TEST = """
from tartlet_sdk import Model, Sampler, inferlet

@inferlet
async def self_test(n: int) -> int:
    context = Model.default().context()
    context.fill("Hello")
    draft = await context.fork().generate(Sampler.greedy(), max_tokens=n)
    return len(draft.tokens)
"""
SELF_TEST_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    is_ok: bool
    detail: str
    hint: str = ""
    """What to do about it, if it is not right."""


def examine(progress: Progress = silent) -> list[Finding]:
    """Look at versions, backend, caches and models, and run a program on the tiny random model.

    Nothing that goes wrong on the way raises: it becomes a finding that is not ok. A tool that builds programs may be
    missing, though: who writes none in its language needs none. Costs some seconds, most of them
    the import of torch; a minute the first time, when the runner is built.
    """
    looks: dict[str, Callable[[], Finding]] = {
        "tartlet": lambda: Finding("tartlet", True, tartlet.__version__),
        "python": lambda: Finding("python", True, f"{platform.python_version()} ({sys.executable})"),
        "wasmtime": lambda: _package("wasmtime"),
        "torch": lambda: _package("torch"),
        "transformers": lambda: _package("transformers"),
        "machine": _machine,
        "home": lambda: _folder("home", paths.folder(".")),
        "models": lambda: _folder("models", paths.models_folder()),
        "components": lambda: _folder("components", paths.components_folder(), compiler.MAX_BYTES),
        "runners": lambda: _folder("runners", paths.runners_folder(), python.MAX_BYTES + javascript.MAX_BYTES),
        "packed models": lambda: _folder("packed models", paths.packed_folder()),
        "saved contexts": lambda: _folder("saved contexts", paths.saved_folder()),
        "default model": _default_model,
        "self-test": lambda: _self_test(progress),
    }
    return [_guarded(name, look) for name, look in looks.items()] + _tools()


def _guarded(name: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except TartletError as error:
        return Finding(name, False, error.message, error.hint)
    except Exception as error:  # a broken installation can raise anything, and that is what we look for
        return Finding(name, False, f"{type(error).__name__}: {error}", "Install tartlet again.")


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", f"pip install {name}")


def _tools() -> list[Finding]:
    """What builds programs, by tool."""
    titles: dict[str, list[str]] = {}
    tools = {}
    for language in LANGUAGES:
        for tool in language.tools():
            tools[tool.name] = tool
            titles.setdefault(tool.name, []).append(language.title)
    return [
        Finding(name, True, f"{tool.version}, for {', '.join(titles[name])}")
        if tool.version is not None
        else Finding(name, True, f"not installed; programs in {', '.join(titles[name])} need it to be built", tool.hint)
        for name, tool in tools.items()
    ]


def _machine() -> Finding:
    cores = len(os.sched_getaffinity(0))
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Finding("machine", True, f"{platform.machine()}, {cores} cores, {memory_bytes / 1e9:.0f} GB of memory")


def _folder(name: str, folder: Path, max_bytes: int | None = None) -> Finding:
    size_bytes = models.folder_bytes(folder)
    free_bytes = shutil.disk_usage(folder).free
    bound = "" if max_bytes is None else f" of at most {max_bytes / 1e6:,.0f} MB"
    detail = f"{folder}: {size_bytes / 1e6:,.0f} MB{bound}"
    if not os.access(folder, os.W_OK):
        return Finding(name, False, f"{folder} cannot be written to", "Let TARTLET_HOME name a folder of your own.")
    return Finding(name, True, f"{detail}, {free_bytes / 1e9:,.0f} GB free on its disk" if name == "home" else detail)


def _default_model() -> Finding:
    row = next(row for row in models.list_models() if row.name == models.DEFAULT)
    return Finding("default model", True, f"{row.name}: {row.state}")


def _self_test(progress: Progress) -> Finding:
    started = time.monotonic()
    generated, backend = asyncio.run(_run_self_test(progress))
    seconds = time.monotonic() - started
    if generated != SELF_TEST_TOKENS:
        return Finding("self-test", False, f"{generated} tokens instead of {SELF_TEST_TOKENS}", "Please report this.")
    detail = f"a program generated {generated} tokens on the tiny model, backend {backend}, {seconds:.1f} s in all"
    return Finding("self-test", True, detail)


async def _run_self_test(progress: Progress) -> tuple[object, str]:
    """Return how many tokens the program says it has generated, and on which backend."""
    from tartlet.host import Host

    async with Host(models.TINY, kv_pages=16, spares=0, progress=progress) as host:
        info = host.models[0]
        return await host.run(SELF_TEST, {"n": SELF_TEST_TOKENS}), f"{info.backend} in {info.dtype}"
