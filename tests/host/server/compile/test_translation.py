"""Source in compile children, before they are confined."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tartlet.component_limits import ComponentLimits
from tartlet.errors import BuildError, ProgramError, TartletError
from tartlet.languages import registry
from tartlet.languages.javascript import JAVASCRIPT, runner_component
from tartlet.languages.language import Language
from tartlet.languages.node import node_tool, packages
from tartlet.progress import silent
from tartlet.runtime.compiled_program import read_source
from tartlet.server.compile.client import CompileClient
from tartlet.server.compile.messages import CompileJob, CompileLimits
from tartlet.server.compile.translation import translate

pytestmark = pytest.mark.runner

Uploaded = Callable[[bytes], Path]
TYPESCRIPT = (
    'import { inferlet } from "tartlet-sdk";\nexport default inferlet(async ({ n }: { n: number }) => n + 1);\n'
)


def stored(**files: str) -> bytes:
    """Source as the front stores it."""
    return json.dumps(
        {"main": "main", "files": {name.replace("_", "."): text for name, text in files.items()}}
    ).encode()


def job_for(path: Path, limits: CompileLimits | None = None) -> CompileJob:
    return CompileJob(
        path=str(path),
        kind="source",
        folder=str(path.parent),
        component=ComponentLimits(),
        limits=limits or CompileLimits(),
        parent=os.getpid(),
    )


@pytest.fixture
def javascript() -> None:
    if node_tool().version is None:
        pytest.skip(f"Node.js is not installed: {node_tool().hint}")
    packages(silent)
    runner_component(silent)


def test_python_stays_as_it_is(uploaded: Uploaded) -> None:
    """Its runner takes files as they are."""
    translated = translate(job_for(uploaded(stored(main_py="x = 1\n"))))

    assert (translated.source.language, translated.source.files) == ("python", {"main.py": "x = 1\n"})


def test_typescript_becomes_what_its_runner_takes(uploaded: Uploaded, javascript: None) -> None:
    """One file without types."""
    source = translate(job_for(uploaded(stored(main_ts=TYPESCRIPT)))).source

    assert (source.language, set(source.files)) == ("javascript", {"program.js", "program.js.map"})
    assert "number" not in source.files["program.js"]


async def test_a_child_compiles_typescript(uploaded: Uploaded, home: Path, javascript: None) -> None:
    """All the way, under its limits; nothing but the code is left."""
    client = CompileClient()
    made = await client.compile(
        uploaded(stored(main_ts=TYPESCRIPT)), ComponentLimits(), tenant="acme", folder=home, kind="source"
    )

    assert (made.facts.is_inferlet, made.facts.is_controller, made.facts.parameters) == (True, False, None)
    assert read_source(Path(made.code_path)).language == "javascript"
    assert os.listdir(home) == [Path(made.code_path).name]


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("export default (", r"main\.ts:1:16"),
        ('import "../secret"; export default 1;', "none of the program's files"),
        ("x = [" + "[" * 100_000, None),
        ("x = " + "(" * 1_000_000, None),
        ("type A = " + "[" * 100_000, None),
        ("`${" * 100_000, None),
    ],
)
async def test_what_cannot_be_translated(
    uploaded: Uploaded, home: Path, javascript: None, main: str, message: str | None
) -> None:
    """Or only with more than a child may use, fails that program alone; nothing is kept."""
    client = CompileClient(CompileLimits(cpu_s=10))
    path = uploaded(stored(main_ts=main))

    with pytest.raises(TartletError, match=message) as caught:
        await client.compile(path, ComponentLimits(), tenant="acme", folder=home, kind="source")
    assert caught.value.code in ("build", "compile_limit", "compile_failed")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("missing", ["can_take_files", "is_runner_there"])
def test_a_language_whose_tools_are_missing(uploaded: Uploaded, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """The error says what to upload instead; nothing is installed or built."""
    assert JAVASCRIPT.source_mode is not None
    mode = replace(JAVASCRIPT.source_mode, **{missing: lambda: False})
    languages: list[Language] = [replace(JAVASCRIPT, source_mode=mode)]
    monkeypatch.setattr(registry, "LANGUAGES", languages)

    with pytest.raises(BuildError, match="this server takes no source in JavaScript") as caught:
        translate(job_for(uploaded(stored(main_ts=TYPESCRIPT))))
    assert caught.value.code == "unsupported_language"
    assert "tartlet build" in caught.value.hint


def test_what_is_stored_wrongly_is_told(uploaded: Uploaded, tmp_path: Path) -> None:
    """A file that is gone, and one that is no source."""
    with pytest.raises(ProgramError, match="cannot be read: No such file"):
        translate(job_for(tmp_path / "missing"))
    with pytest.raises(ProgramError, match="the stored source cannot be read"):
        translate(job_for(uploaded(b"{}")))
