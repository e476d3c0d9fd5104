"""JavaScript programs that come as files from elsewhere, some of which mean harm."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import javascript_files
from tartlet.languages.esbuild import Bundle
from tartlet.languages.javascript_files import bundle_files
from tartlet.languages.node import node_tool, packages
from tartlet.progress import silent

pytestmark = pytest.mark.runner

MAIN = """import { inferlet } from "tartlet-sdk";
import { three } from "./lib/numbers";
export const two: number = 2;
export default inferlet(async () => three + two);
"""
NUMBERS = """import { two } from "../main.js";
export const three = 3;
export const later = () => two;
"""


@pytest.fixture(autouse=True)
def tools() -> None:
    if node_tool().version is None:
        pytest.skip(f"Node.js is not installed: {node_tool().hint}")
    packages(silent)


def test_files_become_one_that_requires_the_sdk() -> None:
    """Whatever they call each other, and in circles; the map names all of them."""
    bundle = bundle_files("main.ts", {"main.ts": MAIN, "lib/numbers.ts": NUMBERS})

    assert 'module.exports = $load("main.ts");' in bundle.code
    assert '{"./lib/numbers": "lib/numbers.ts"}' in bundle.code
    assert '{"../main.js": "main.ts"}' in bundle.code
    assert '"sources": ["lib/numbers.ts", "main.ts"]' in bundle.source_map
    assert ": number" not in bundle.code


@pytest.mark.parametrize("name", ["./a", "./a.ts", "./a.js", "./b", "./b/", "./b/index.js", "./c", "./d.mjs"])
def test_imports_are_found_as_bundlers_find_them(name: str) -> None:
    """Without a suffix, with that of what is translated, and folders with an index."""
    files = {"main.ts": f'import {{ x }} from "{name}"; console.log(x);'}
    files |= {path: "export const x = 1;" for path in ("a.ts", "b/index.ts", "c.mjs", "d.mts")}

    assert bundle_files("main.ts", files).code


@pytest.mark.parametrize(
    "statement",
    [
        'import "../../../../etc/passwd";',
        'import x from "/etc/passwd"; console.log(x);',
        'export * from "../x";',
        'const x = require("/etc/hosts");',
        'const x = require.resolve("../x");',
        'const x = import("./missing.json");',
        'import "file:///etc/passwd";',
        'import "data:text/javascript,1";',
        'import "fs"; import "lodash";',
        'import "tartlet-sdk/src/wit";',
        'import "./main.ts?x";',
        'import "";',
    ],
)
def test_what_is_none_of_the_files_is_refused(statement: str) -> None:
    """Paths to elsewhere, packages, and files that are missing; the message has the importing file."""
    with pytest.raises(BuildError, match=r"^lib/part\.ts imports .* none of the program's files") as caught:
        bundle_files("main.ts", {"main.ts": 'import "./lib/part";', "lib/part.ts": statement})
    assert "tartlet build" in caught.value.hint


@pytest.mark.parametrize("comment", ["//# sourceMappingURL=", "//@ sourceMappingURL=", "/*# sourceMappingURL="])
def test_no_file_is_opened_that_a_comment_names(comment: str, tmp_path: Path) -> None:
    """A source map that is named would be read, and the error would show what is in it."""
    (tmp_path / "secret").write_text("my secret")
    end = "*/" if comment.startswith("/*") else ""

    bundle = bundle_files("main.js", {"main.js": f"export const x = 1;\n{comment}{tmp_path}/secret{end}"})

    assert "my secret" not in bundle.source_map


def test_imports_with_a_computed_name_open_nothing(tmp_path: Path) -> None:
    """A bundler would look for all files that could be meant."""
    (tmp_path / "secret.js").write_text("export default 'my secret'")
    text = f"const name = 'x'; import(`{tmp_path}/${{name}}.js`); require('../' + name + '.js');"

    assert "my secret" not in bundle_files("main.js", {"main.js": text}).code


def test_a_mistake_is_shown_with_its_place() -> None:
    """In the file as it was given."""
    with pytest.raises(BuildError, match=r"lib/part\.ts:2:8"):
        bundle_files("main.ts", {"main.ts": "", "lib/part.ts": "let y = 1;\nlet x = = 3;"})


def test_a_tool_is_confined_and_what_it_uses_is_bounded() -> None:
    """One that uses its time up fails this program alone."""

    def no_time() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (0, 0))

    with pytest.raises(BuildError, match="too much time or memory") as caught:
        bundle_files("main.js", {"main.js": "f(" * 2_000 + ")" * 2_000 + ";x = [" + "1," * 3_000_000 + "];"}, no_time)
    assert caught.value.code == "compile_limit"


def test_a_bundle_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What esbuild adds counts as well."""
    monkeypatch.setattr(javascript_files, "MAX_BYTES", 100)

    with pytest.raises(BuildError, match="at most 100 are allowed"):
        bundle_files("main.js", {"main.js": "export const x = 1;"})


def test_without_esbuild_nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever sends a program does not make the server fetch things."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))

    with pytest.raises(BuildError, match="esbuild is not installed"):
        bundle_files("main.js", {"main.js": ""})


def test_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither of a program that is translated, nor of one that is refused."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert isinstance(bundle_files("main.js", {"main.js": ""}), Bundle)
    with pytest.raises(BuildError):
        bundle_files("main.js", {"main.js": "import 'x'"})

    assert os.listdir(tmp_path) == []
