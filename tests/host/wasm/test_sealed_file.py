"""Files with a digest at their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.wasm.sealed_file import SEAL_BYTES, is_whole, seal, write_sealed


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_what_was_sealed_is_whole(tmp_path: Path, size: int) -> None:
    """Of any length; and the seal is as long as is said."""
    path = tmp_path / "file"
    content = bytes(range(256)) * (size // 256 + 1)
    path.write_bytes(content[:size] + seal(content[:size]))

    assert len(seal(b"")) == SEAL_BYTES
    with path.open("rb") as file:
        assert is_whole(file)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """In the content, in the digest, and in what marks it as one; and every byte that is missing or too much."""
    whole = b"native code" + seal(b"native code")
    damaged = [
        bytes([*whole[:at], whole[at] ^ 1 << bit, *whole[at + 1 :]]) for at in range(len(whole)) for bit in (0, 7)
    ]
    damaged += [whole[:size] for size in range(len(whole))] + [whole[1:], whole + b"\0"]
    path = tmp_path / "file"
    for content in damaged:
        path.write_bytes(content)
        with path.open("rb") as file:
            assert not is_whole(file)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Only its owner may read it; what cannot be written leaves what was there, and nothing beside it."""
    path = tmp_path / "code"
    write_sealed(path, b"first")
    with pytest.raises(TypeError):
        write_sealed(path, "no bytes")  # type: ignore[arg-type]

    assert path.read_bytes() == b"first" + seal(b"first")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
