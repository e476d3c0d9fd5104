"""Source in compile children: what comes of good source, and of source that means harm."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tartlet.component_limits import ComponentLimits
from tartlet.errors import TartletError
from tartlet.runtime.compiled_program import read_source
from tartlet.server.compile.client import CompileClient
from tartlet.server.compile.messages import Compiled, CompileLimits
from tartlet.server.front.uploads import MOST_FILES

pytestmark = pytest.mark.runner

Uploaded = Callable[[bytes], Path]
REFUSED = ("build", "invalid_source", "compile_limit", "compile_failed")
BEGIN = "from tartlet_sdk import inferlet\n@inferlet\ndef main(n: int = 1): return n\n"


async def compiled(path: Path, home: Path, limits: CompileLimits | None = None) -> Compiled:
    """What a child makes of a file of source."""
    client = CompileClient(limits)
    return await client.compile(path, ComponentLimits(), tenant="acme", folder=home, kind="source")


def stored(main: str, **others: str) -> bytes:
    """Source as the front stores it."""
    files = {"main.py": main} | {f"{name}.py": text for name, text in others.items()}
    return json.dumps({"main": "main", "files": files}).encode()


async def test_source_is_kept_with_its_code(home: Path, uploaded: Uploaded) -> None:
    """And its facts are told. The same source, whatever the order of its files, has the same code."""
    made = await compiled(uploaded(stored(BEGIN, a="x = 1\n", b="x = 2\n")), home)
    turned = await compiled(uploaded(stored(BEGIN, b="x = 2\n", a="x = 1\n")), home)
    source, same = read_source(Path(made.code_path)), read_source(Path(turned.code_path))

    assert [parameter.name for parameter in made.facts.parameters or ()] == ["n"]
    assert (source.language, source.main, source.is_controller) == ("python", "main", False)
    assert {"text", "code"} == set(json.loads(source.files_json)["a.py"])
    assert source == same


@pytest.mark.parametrize(
    "main",
    [
        "x = " + "(" * 65_536 + ")" * 65_536,
        "x = " + "[" * 199 + "]" * 199 + "\n" + "x = " + "-" * 1_000_000 + "1",
        BEGIN + "x = " + "1 + " * 300_000 + "1\n",
        BEGIN + "".join(" " * depth + "if 1:\n" for depth in range(150)) + " " * 150 + "pass\n",
        BEGIN + "x = " + "9" * 1_000_000 + "\n",
        BEGIN + "x = '\0'\n",
        "\ufeff\ufeff" + BEGIN,
        BEGIN + "# -*- coding: utf-16 -*-\nx = '\\N{nothing}'\n",
        BEGIN + "x = " + "f'{" * 200 + "1" + "}'" * 200 + "\n",
        "".join(f"x{number} = {number}\n" for number in range(50_000)),
    ],
    ids=["brackets", "minus", "sum", "blocks", "digits", "null", "bom", "escape", "f-strings", "nothing to run"],
)
async def test_hostile_source_is_refused(home: Path, uploaded: Uploaded, main: str) -> None:
    """Or compiled, if the runner can: either way it ends, as the program's own fault, and leaves nothing of it."""
    (outcome,) = await asyncio.gather(compiled(uploaded(stored(main)), home), return_exceptions=True)
    if isinstance(outcome, Compiled):
        assert len(list(home.iterdir())) == 1
        return
    assert isinstance(outcome, TartletError)
    assert outcome.code in (*REFUSED, "no_inferlet")
    assert len(str(outcome)) < 40_000
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"[" * 100_000, b'{"main": "main", "files": {"main.py": "\\ud800"}}', b'{"main": 1}', b"\xff"],
    ids=["empty", "deep", "surrogate", "types", "bytes"],
)
async def test_a_stored_file_that_is_none(home: Path, uploaded: Uploaded, data: bytes) -> None:
    """It is an error like any other."""
    with pytest.raises(TartletError) as error:
        await compiled(uploaded(data), home)
    assert error.value.code in ("not_found", "build")


async def test_source_that_takes_too_long(home: Path, uploaded: Uploaded) -> None:
    """The child is stopped by its limits: what Python's parser takes for a dotted name grows with its square."""
    main = BEGIN + "import " + "a." * 500_000 + "b\n"
    with pytest.raises(TartletError) as error:
        await compiled(uploaded(stored(main)), home, CompileLimits(cpu_s=2, wall_s=60))
    assert error.value.code in REFUSED


async def test_source_that_takes_too_much_memory(home: Path, uploaded: Uploaded) -> None:
    """It is stopped by the child's limit, which is less than the sandbox's own here."""
    main = BEGIN + "x = [" + "(1, 'a', b'c')," * 120_000 + "]\n"
    with pytest.raises(TartletError) as error:
        await compiled(uploaded(stored(main)), home, CompileLimits(memory_bytes=150 << 20))
    assert error.value.code in REFUSED


async def test_many_files(home: Path, uploaded: Uploaded) -> None:
    """As many as a program may have."""
    others = {f"m{number}": f"x = {number}\n" * 100 for number in range(MOST_FILES - 1)}
    async with asyncio.timeout(60):
        made = await compiled(uploaded(stored(BEGIN, **others)), home)

    assert len(json.loads(read_source(Path(made.code_path)).files_json)) == MOST_FILES
