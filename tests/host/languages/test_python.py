"""Finding and building the Python runner, and building programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages import componentize, python
from tartlet.languages.language import ProgramSource
from tartlet.languages.python import build_component, read_source, runner_component, runner_digest


def test_a_file_is_its_own_main_module(tmp_path: Path) -> None:
    """A single .py file brings nothing else of its folder."""
    (tmp_path / "one.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("y = 1\n")

    assert read_source(tmp_path / "one.py") == ProgramSource("python", "one", {"one.py": "x = 1\n"})


def test_a_folder_brings_its_modules(tmp_path: Path) -> None:
    """All Python files below it come, but those of hidden folders and caches; others do not."""
    for name in (
        "main.py",
        "package/__init__.py",
        ".venv/lib.py",
        "__pycache__/main.py",
        "node_modules/x.py",
        "data.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(f"# {name}\n")

    assert read_source(tmp_path) == ProgramSource(
        "python", "main", {"main.py": "# main.py\n", "package/__init__.py": "# package/__init__.py\n"}
    )


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    """A folder without main.py, a file of another kind, a missing path, and bytes that are no text."""
    (tmp_path / "text.txt").write_text("")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")

    for path in (tmp_path, tmp_path / "text.txt", tmp_path / "missing"):
        with pytest.raises(BuildError, match=r"is neither a \.py file nor a folder with a main\.py"):
            read_source(path)
    with pytest.raises(BuildError, match=r"latin\.py is not UTF-8 text"):
        read_source(tmp_path / "latin.py")


def test_the_digest_follows_what_the_runner_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed source or another version of the tool gives another runner; the same gives the same."""
    for package in python.GUEST_PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    monkeypatch.setattr(python, "guest_sources", lambda: tmp_path)
    first = runner_digest()

    assert runner_digest() == first
    (tmp_path / "tartlet_sdk" / "__init__.py").write_text("x = 1\n")
    second = runner_digest()
    monkeypatch.setattr(componentize, "version", lambda: "0")
    assert len({first, second, runner_digest()}) == 3


def test_a_prebuilt_runner_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release carries the runner: nothing is built."""
    prebuilt = tmp_path / "python.wasm"
    prebuilt.write_bytes(b"")
    monkeypatch.setattr(python, "PREBUILT_RUNNER", prebuilt)

    assert runner_component() == prebuilt


@pytest.mark.runner
def test_the_runner_is_built_once() -> None:
    """The second call finds what the first has built."""
    component = runner_component()
    built = component.stat().st_ino

    assert runner_component() == component
    assert component.stat().st_ino == built
    assert component.read_bytes()[:4] == b"\0asm"


@pytest.mark.slow
def test_a_program_that_does_not_compile_is_not_built(tmp_path: Path) -> None:
    """The error is the program's own, with its place, and no component appears."""
    (tmp_path / "wrong.py").write_text("def f(:\n")

    with pytest.raises(BuildError) as caught:
        build_component(tmp_path / "wrong.py", tmp_path / "out.wasm")
    assert caught.value.message == 'File "wrong.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax'
    assert not (tmp_path / "out.wasm").exists()
