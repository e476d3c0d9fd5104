"""Bundling programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import esbuild
from tartlet.languages.esbuild import bundle_component, bundle_program
from tartlet.languages.node import node_tool
from tartlet.progress import silent

pytestmark = [
    pytest.mark.runner,
    pytest.mark.skipif(node_tool().version is None, reason=f"Node.js is not installed: {node_tool().hint}"),
]


def test_a_program_and_what_it_imports_are_one_file(tmp_path: Path) -> None:
    """Types are gone, the SDK is required, and async functions use the global Promise."""
    (tmp_path / "other.ts").write_text("export const x: number = 1;\n")
    lines = (
        'import { inferlet } from "tartlet-sdk";',
        'import { x } from "./other";',
        "export default inferlet(async () => x);",
    )
    (tmp_path / "main.ts").write_text("\n".join(lines))

    bundle = bundle_program(tmp_path / "main.ts", silent)
    assert 'require("tartlet-sdk")' in bundle.code
    assert "new Promise" in bundle.code
    assert "async" not in bundle.code.replace("__async", "")
    assert sorted(json.loads(bundle.source_map)["sources"]) == ["main.ts", "other.ts"]


def test_packages_of_the_programs_folder_are_bundled(tmp_path: Path) -> None:
    """Those that npm has installed there."""
    package = tmp_path / "node_modules" / "added"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "added", "main": "lib.js"}')
    (package / "lib.js").write_text("module.exports = { added: (a, b) => a + b };\n")
    (tmp_path / "main.js").write_text('import { added } from "added";\nexport default () => added(1, 2);\n')

    assert "a + b" in bundle_program(tmp_path / "main.js", silent).code


@pytest.mark.parametrize(
    ("text", "expected", "hint"),
    [
        ("let x = ;\n", r'Unexpected ";"\n\n\s+main\.ts:1:8', ""),
        (
            'import fs from "fs";\nfs;\n',
            r'Could not resolve "fs"',
            "Modules of Node, such as fs, are not there in the sandbox.",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, expected: str, hint: str) -> None:
    """In esbuild's own words."""
    (tmp_path / "main.ts").write_text(text)

    with pytest.raises(BuildError, match=expected) as caught:
        bundle_program(tmp_path / "main.ts", silent)
    assert caught.value.hint.startswith(hint)
    assert bool(caught.value.hint) == bool(hint)
    assert "external" not in caught.value.message
    assert "platform" not in caught.value.message


def test_a_bundle_may_not_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it imports."""
    monkeypatch.setattr(esbuild, "MAX_BYTES", 100)
    (tmp_path / "main.ts").write_text(f"export default () => {json.dumps('x' * 100)};\n")

    with pytest.raises(BuildError, match="more than 100 bytes with all that it imports"):
        bundle_program(tmp_path / "main.ts", silent)


def test_a_component_imports_the_host(tmp_path: Path) -> None:
    """And modules that others stand for are bundled."""
    (tmp_path / "given.js").write_text("export default 'given';\n")
    (tmp_path / "app.ts").write_text(
        'import given from "named";\nimport { print } from "tartlet:inferlet/log@0.1.0";\nprint(given);\n'
    )
    output = tmp_path / "out.js"

    bundle_component(tmp_path / "app.ts", output, {"named": tmp_path / "given.js"}, silent)
    text = output.read_text()
    assert 'from"tartlet:inferlet/log@0.1.0"' in text
    assert "given" in text
    assert not os.path.exists(f"{output}.map")
