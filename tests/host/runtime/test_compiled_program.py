from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.errors import ProgramError
from tartlet.runtime.compiled_program import CompiledSource, read_source, write_source

SOURCE = CompiledSource("python", "main", True, '{"main.py": {"text": "\\n", "code": "aGk="}}')


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """And nothing else lies beside it, which is the owner's alone."""
    write_source(tmp_path / "a", SOURCE)

    assert read_source(tmp_path / "a") == SOURCE
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("change", ["flip", "cut", "empty", "gone"])
def test_what_is_not_as_it_was_written(tmp_path: Path, change: str) -> None:
    """It is not run."""
    path = tmp_path / "a"
    write_source(path, SOURCE)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes({"flip": bytes(content), "cut": path.read_bytes()[:-1], "empty": b""}[change])

    with pytest.raises(ProgramError) as error:
        read_source(path)
    assert error.value.code == "code_missing"
    assert str(tmp_path) not in str(error.value)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it."""

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_source(tmp_path / "a", SOURCE)
    assert list(tmp_path.iterdir()) == []
