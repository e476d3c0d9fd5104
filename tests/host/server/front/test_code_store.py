from __future__ import annotations

import os
from pathlib import Path

import pytest

from tartlet.server.front.code_store import CodeStore
from tartlet.server.requests import ProgramRef


@pytest.fixture
def code(tmp_path: Path) -> CodeStore:
    return CodeStore(tmp_path / "code", 1000)


def program(tenant: str, digest: str) -> ProgramRef:
    return ProgramRef(digest, "/nowhere", "component", "program", tenant)


def make(code: CodeStore, tenant: str, digest: str, *, used: int, size: int = 100) -> Path:
    """What a child would make, used at some time."""
    path = code.folder(tenant) / f"{digest}-v1.cwasm"
    path.write_bytes(b"x" * size)
    os.utime(path, (used, used))
    return path


def test_what_was_made_is_found(code: CodeStore) -> None:
    """Once it is known how such files are called, and by its own tenant only. To find it is to use it."""
    path = make(code, "acme", "ab", used=1)
    assert code.find(program("acme", "ab")) is None
    code.note(program("acme", "ab"), path)

    assert code.find(program("acme", "ab")) == path
    assert path.stat().st_mtime > 1
    assert code.find(program("acme", "cd")) is None
    assert code.find(program("globex", "ab")) is None


def test_each_language_s_files_are_called_otherwise(code: CodeStore) -> None:
    """What was made of one is found after another has been made, too."""
    first = make(code, "acme", "ab", used=1)
    second = first.with_name("cd-v2.json")
    second.write_bytes(b"x")
    for path in (first, second):
        code.note(program("acme", path.name[:2]), path)

    assert [code.find(program("acme", digest)) for digest in ("ab", "cd", "ef")] == [first, second, None]


def test_others_are_not_driven_out(code: CodeStore) -> None:
    """One who has a lot made loses what it used longest ago; who has less keeps even what is older."""
    old = make(code, "globex", "ab", used=1, size=300)
    many = [make(code, "acme", f"{index:02}", used=10 + index) for index in range(20)]
    code.shrink()

    assert old.exists()
    assert [path.exists() for path in many] == [False] * 13 + [True] * 7


def test_the_last_one_stays(code: CodeStore) -> None:
    """However large it is: a run is about to need it. Nobody else pays for it."""
    small = make(code, "globex", "ab", used=1)
    large = make(code, "acme", "ab", used=2, size=5000)
    code.shrink()

    assert large.exists()
    assert small.exists()


def test_what_nobody_has_any_more_goes(code: CodeStore, tmp_path: Path) -> None:
    """When a program is deleted, and at the start of a server: with what a child has left that was killed."""
    kept, dropped, foreign = (make(code, tenant, "ab", used=1) for tenant in ("acme", "globex", "gone"))
    (code.folder("acme") / "compiling-x").write_bytes(b"half")
    code.drop("globex", "ab")
    assert not dropped.exists()
    code.sweep({("acme", "ab"), ("globex", "ab")})

    assert [path for path in (tmp_path / "code").rglob("*") if path.is_file()] == [kept]
    assert not foreign.parent.exists()


def test_nothing_is_there_yet(code: CodeStore) -> None:
    """That is no error."""
    code.sweep(set())
    code.shrink()
    code.drop("acme", "ab")
