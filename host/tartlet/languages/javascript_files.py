"""JavaScript and TypeScript programs that come as files from elsewhere: made into one, without reading any other file.

esbuild translates each file by itself, and resolves no import: it only lists them. Here they are looked for among the
program's files, and what is not there is refused; the modules are then written into one, as a bundler would.
"""

from __future__ import annotations

import json
import posixpath
import re
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from tartlet.errors import BuildError
from tartlet.languages.esbuild import LOWERED, MAX_BYTES, SDK_PACKAGE, Bundle
from tartlet.languages.node import INSTALL, installed_esbuild
from tartlet.languages.source_maps import JoinedMap
from tartlet.languages.tool import run_tool
from tartlet.progress import silent

EXPECTED_S = 0.1
SUFFIXES = (".ts", ".js", ".mts", ".mjs")
_OUT_OF_MEMORY = ("runtime: out of memory", "cannot allocate memory", "failed to create new OS thread")
_BEGIN = "var $modules = {"
_END = """};
var $loaded = {};
function $load(name) {
  if (!Object.hasOwn($loaded, name)) {
    const module = $loaded[name] = { exports: {} };
    const [imports, body] = $modules[name];
    const find = (asked) => Object.hasOwn(imports, asked) ? $load(imports[asked]) : require(asked);
    body(find, module, module.exports);
  }
  return $loaded[name].exports;
}
"""
_SOURCE_MAP_COMMENT = re.compile(r"(?<=[/*])[#@](?=[ \t]*sourceMappingURL)")
"""esbuild would open the file that it names."""


def bundle_files(main: str, files: Mapping[str, str], before_start: Callable[[], None] | None = None) -> Bundle:
    """Bundle a program of which all files are given, with `/` in their paths.

    Args:
        main: The path of the one that it begins with.
        files: The texts by their paths.
        before_start: Called in the process that becomes esbuild: takes away what it need not have.

    Raises:
        BuildError: A file cannot be parsed, or imports what is not there; or esbuild is missing.
    """
    names = sorted(files)
    with tempfile.TemporaryDirectory(prefix="tartlet-files-") as made:
        root = Path(made).resolve()
        for name in names:
            path = root / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_SOURCE_MAP_COMMENT.sub(" ", files[name]), encoding="utf-8")
        _translate(root, names, before_start)
        meta = json.loads((root / "meta.json").read_text(encoding="utf-8"))["outputs"]
        outputs = [root / "out" / f"{number}.js" for number in range(len(names))]
        imports = [[each["path"] for each in meta[f"../out/{output.name}"]["imports"]] for output in outputs]
        codes = [output.read_text(encoding="utf-8") for output in outputs]
        maps = [json.loads(Path(f"{output}.map").read_text(encoding="utf-8"))["mappings"] for output in outputs]
    return _linked(main, names, codes, maps, [_found(*each, names) for each in zip(names, imports, strict=True)])


def _translate(root: Path, names: Sequence[str], before_start: Callable[[], None] | None) -> None:
    esbuild = installed_esbuild()
    if esbuild is None:
        raise BuildError("esbuild is not installed", hint=INSTALL)
    command = [str(esbuild), *(f"{number}={name}" for number, name in enumerate(names)), *LOWERED]
    command += ["--format=cjs", "--outdir=../out", "--outbase=.", "--metafile=../meta.json", "--tsconfig-raw={}"]
    command += ["--sourcemap=external", "--sources-content=false"]
    try:
        ended = run_tool(
            command,
            folder=root / "in",
            task="",
            expected_s=EXPECTED_S,
            progress=silent,
            before_start=before_start,
        )
    except OSError as error:  # the names together are longer than the system takes
        raise BuildError(f"esbuild cannot be started: {error.strerror}") from error
    if ended.status < 0 or any(sign in ended.log for sign in _OUT_OF_MEMORY):
        raise BuildError("translating the program takes too much time or memory", code="compile_limit")
    if ended.status != 0:
        raise BuildError(ended.tail)


def _found(name: str, imports: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """Which files are meant by what a file imports, but for the SDK. Raises BuildError for what is not there."""
    found = {}
    for asked in imports:
        if asked == SDK_PACKAGE:
            continue
        file = next(filter(names.__contains__, _candidates(name, asked)), None)
        if file is None:
            raise BuildError(
                f"{name} imports {asked[:200]!r}, which is none of the program's files",
                hint="Send it with them; bundle packages of npm into them, or send a component: `tartlet build`.",
            )
        found[asked] = file
    return found


def _candidates(name: str, asked: str) -> list[str]:
    """The files that an import could mean, the likeliest first. None of a package, or of a path from the root."""
    if not asked.startswith(("./", "../")):
        return []
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), asked))
    stem, suffix = posixpath.splitext(path)
    of_typescript = [f"{stem}.{suffix[1:].replace('js', 'ts')}"] if suffix in (".js", ".mjs") else []
    return [path, *of_typescript, *(path + each for each in SUFFIXES), *(f"{path}/index{each}" for each in SUFFIXES)]


def _linked(
    main: str, names: Sequence[str], codes: Sequence[str], maps: Sequence[str], imports: Sequence[Mapping[str, str]]
) -> Bundle:
    """Write all modules into one."""
    parts = [_BEGIN]
    joined = JoinedMap()
    joined.skip_lines(1)
    for name, code, mappings, found in zip(names, codes, maps, imports, strict=True):
        parts.append(f"{json.dumps(name)}: [{json.dumps(found)}, function (require, module, exports) {{")
        parts += [code, "}],"]
        joined.skip_lines(1)
        joined.add(name, mappings, num_lines=code.count("\n") + 1)
        joined.skip_lines(1)
    code = "\n".join(parts) + "\n" + _END + f"module.exports = $load({json.dumps(main)});\n"
    if len(code) > MAX_BYTES:
        raise BuildError(f"the program has {len(code):,} bytes, and at most {MAX_BYTES:,} are allowed")
    return Bundle(code, joined.to_json())
