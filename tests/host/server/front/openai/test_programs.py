from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from tartlet.server.front.openai.programs import FOLDER, endpoint_program, endpoint_source
from tartlet.server.requests import SourceFile


def test_programs_are_stored_by_their_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and again if somebody has cleared the folder."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    program = endpoint_program("chat")
    data = Path(program.path).read_bytes()
    Path(program.path).unlink()

    assert hashlib.sha256(data).hexdigest() == program.digest
    assert endpoint_program("chat") == program
    assert Path(program.path).read_bytes() == data
    assert msgspec.json.decode(data, type=SourceFile).main == "chat"
    assert endpoint_program("completions").digest != program.digest
    assert {path.name for path in Path(program.path).parent.iterdir()} == {
        program.digest,
        endpoint_program("completions").digest,
    }


def test_every_module_is_part_of_a_program() -> None:
    """None is forgotten."""
    modules = {name for endpoint in ("chat", "completions") for name in endpoint_source(endpoint).files}

    assert modules == {path.name for path in FOLDER.glob("*.py")}
