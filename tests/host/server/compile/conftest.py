"""A client of compile children that keep what they compile in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Uploaded = Callable[[bytes], Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TARTLET_HOME in which nothing has been compiled."""
    home = tmp_path / "home"
    monkeypatch.setenv("TARTLET_HOME", str(home))
    return home


@pytest.fixture
def uploaded(tmp_path: Path) -> Uploaded:
    """Writes a component to where the front would keep it."""

    def upload(data: bytes) -> Path:
        path = tmp_path / f"upload-{len(list(tmp_path.iterdir()))}"
        path.write_bytes(data)
        return path

    return upload
