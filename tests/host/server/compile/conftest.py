"""A folder of the test's own for what is compiled, and files to compile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Uploaded = Callable[[bytes], Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for what is compiled."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def uploaded(tmp_path: Path) -> Uploaded:
    """Writes a component to where the front would keep it."""

    def upload(data: bytes) -> Path:
        path = tmp_path / f"upload-{len(list(tmp_path.iterdir()))}"
        path.write_bytes(data)
        return path

    return upload
