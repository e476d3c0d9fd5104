"""Tests of how runners are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tartlet.languages.kept_runner import kept_runner, runner_path
from tartlet.progress import silent


@pytest.fixture
def fresh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path))
    return tmp_path


def test_it_is_built_once(fresh_home: Path) -> None:
    """And kept; a build that fails leaves nothing, and is tried again."""
    path, built = runner_path("ours", "1"), []

    def fail(_: Path) -> None:
        raise ValueError("broken")

    def build(where: Path) -> None:
        built.append(where)
        where.write_bytes(b"12345")

    with pytest.raises(ValueError, match="broken"):
        kept_runner(path, "Our", fail, 100, silent)
    for _ in range(2):
        assert kept_runner(path, "Our", build, 100, silent).read_bytes() == b"12345"
    assert built == [path]


def test_those_used_longest_ago_go(fresh_home: Path) -> None:
    """Of the same language; the runners of others stay."""
    other = runner_path("other", "1")
    other.write_bytes(b"x" * 1000)
    for number in (1, 2, 3):
        path = runner_path("ours", str(number))
        kept_runner(path, "Our", lambda where: where.write_bytes(b"12345") and None, 12, silent)
        os.utime(path, (number, number))

    kept_runner(runner_path("ours", "4"), "Our", lambda where: where.write_bytes(b"12345") and None, 12, silent)

    assert sorted(path.name for path in other.parent.glob("*.wasm")) == ["other-1.wasm", "ours-3.wasm", "ours-4.wasm"]
