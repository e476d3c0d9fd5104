"""Finding and building the JavaScript runner, and building programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import tartlet
from tartlet.errors import BuildError
from tartlet.languages import javascript
from tartlet.languages.javascript import (
    CODE,
    SOURCE_MAP,
    build_component,
    has_controller,
    has_inferlet,
    read_source,
    runner_component,
    runner_digest,
)
from tartlet.languages.language import ProgramSource
from tartlet.languages.node import node_tool
from tartlet.testing import FakeEngine
from tartlet.wasm.component_reader import read_externs

needs_node = pytest.mark.skipif(node_tool().version is None, reason=f"Node.js is not installed: {node_tool().hint}")

INFERLET = """import { getModel, inferlet, input } from "tartlet-sdk";

export default inferlet({ n: input.integer(3) }, async ({ n }) => {
  const context = getModel().context();
  context.user("some words");
  const draft = await context.generate({ maxTokens: n });
  return draft.text;
});
"""
CONTROLLER = """import { Controller } from "tartlet-sdk";

export class Often extends Controller {
  step(sequence: { generated: number[] }) {
    return { bias: { 65: 100 } };
  }
}
"""


def source(code: str) -> ProgramSource:
    return ProgramSource("javascript", "main", {CODE: code, SOURCE_MAP: "{}"})


@pytest.mark.runner
@needs_node
def test_a_file_or_a_folder_is_bundled(tmp_path: Path) -> None:
    """A folder by its main file."""
    (tmp_path / "main.js").write_text("export default () => 1;\n")

    for path in (tmp_path, tmp_path / "main.js"):
        program = read_source(path)
        assert program.language == "javascript"
        assert program.main == "main"
        assert program.files.keys() == {CODE, SOURCE_MAP}


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    """A folder without a main file, a file of another kind, a missing path."""
    (tmp_path / "text.txt").write_text("")

    for path in (tmp_path, tmp_path / "text.txt", tmp_path / "missing"):
        with pytest.raises(
            BuildError, match=r"is neither a \.ts or \.js file nor a folder with a main\.ts or main\.js"
        ):
            read_source(path)


@pytest.mark.parametrize(
    ("code", "is_controller", "is_inferlet"),
    [
        ("var main = (0, import_sdk.inferlet)(() => 1);", False, True),
        ("class A extends import_tartlet_sdk.Controller {}", True, False),
        ("class A extends Controller {}\n(0, import_tartlet_sdk.inferlet)(() => 1)", True, True),
        ("var x = () => 1;", False, True),
        ("class A extends Other {}", False, True),
    ],
)
def test_a_program_tells_what_it_is(code: str, is_controller: bool, is_inferlet: bool) -> None:
    """By the class that it extends, and what it calls."""
    assert has_controller(source(code)) == is_controller
    assert has_inferlet(source(code)) == is_inferlet


def test_the_digest_follows_what_the_runner_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed source or another lock gives another runner; the same gives the same."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "index.ts").write_text("")
    (tmp_path / "package-lock.json").write_text("{}")
    monkeypatch.setattr(javascript, "sdk_folder", lambda name: tmp_path)
    first = runner_digest()

    assert runner_digest() == first
    (tmp_path / "src" / "index.ts").write_text("export {};\n")
    second = runner_digest()
    (tmp_path / "package-lock.json").write_text('{"version": 1}')
    assert len({first, second, runner_digest()}) == 3


def test_a_prebuilt_runner_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release carries the runner: nothing is built."""
    prebuilt = tmp_path / "javascript.wasm"
    prebuilt.write_bytes(b"")
    monkeypatch.setattr(javascript, "PREBUILT_RUNNER", prebuilt)

    assert runner_component() == prebuilt
    assert javascript.is_runner_there()


@pytest.mark.runner
@needs_node
def test_the_runner_is_built_once() -> None:
    """The second call finds what the first has built."""
    component = runner_component()
    built = component.stat().st_ino

    assert runner_component() == component
    assert component.stat().st_ino == built
    assert javascript.is_runner_there()


@pytest.mark.runner
@needs_node
async def test_a_built_inferlet_does_what_its_source_does(tmp_path: Path) -> None:
    """The component runs on a host, with the same results and errors."""
    program, component = tmp_path / "main.ts", tmp_path / "main.wasm"
    program.write_text(INFERLET)
    build_component(program, component)

    async with tartlet.Host(engine=FakeEngine()) as host:
        for loaded in (program, component):
            assert await host.run(loaded, {"n": 4}) == "some"
            with pytest.raises(tartlet.GuestError, match="n must be a whole number, not true"):
                await host.run(loaded, {"n": True})


@pytest.mark.runner
@needs_node
def test_a_built_controller_imports_what_controllers_may(tmp_path: Path) -> None:
    """Nothing of contexts and generations, which the SDK has as well."""
    (tmp_path / "main.ts").write_text(CONTROLLER)
    build_component(tmp_path / "main.ts", tmp_path / "main.wasm")

    imports, exports = read_externs((tmp_path / "main.wasm").read_bytes())
    names = {each.name.partition("@")[0] for each in imports}
    assert {"tartlet:inferlet/steering", "tartlet:inferlet/store"} <= names
    assert "tartlet:inferlet/contexts" not in names
    assert {"start", "step"} <= {each.name for each in exports}


@pytest.mark.runner
@needs_node
def test_a_program_that_cannot_be_parsed_is_not_built(tmp_path: Path) -> None:
    """The error is esbuild's own, with its place, and no component appears."""
    (tmp_path / "wrong.ts").write_text("let x = ;\n")

    with pytest.raises(BuildError, match=r"wrong\.ts:1:8"):
        build_component(tmp_path / "wrong.ts", tmp_path / "out.wasm")
    assert not (tmp_path / "out.wasm").exists()
