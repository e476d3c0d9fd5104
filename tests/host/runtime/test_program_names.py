from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tartlet.errors import ProgramError
from tartlet.runtime.program import Program
from tartlet.runtime.program_names import ProgramNames

LINKED: Any = object()


def program(name: str) -> Program:
    """One that is a controller, unless its name says otherwise."""
    return Program(name, "digest", "component", None, None if "inferlet" in name else LINKED)


def names(*known: str) -> tuple[ProgramNames, list[str]]:
    """Names, and what has been loaded."""
    loaded: list[str] = []

    def load(source: str | Path | bytes, name: str) -> Program:
        loaded.append(name)
        return program(name)

    return ProgramNames(dict.fromkeys(known, "source"), load), loaded


@pytest.mark.parametrize(
    ("known", "asked", "found"),
    [
        (["c"], "c", "c"),
        (["c@1", "c"], "c", "c"),
        (["c@1.9", "c@1.10", "c@0.99", "d@5"], "c", "c@1.10"),
        (["c@1.9", "c@1.10"], "c@1.9", "c@1.9"),
        (["c@2.0-beta", "c@1.0"], "c", "c@2.0-beta"),
    ],
)
def test_a_name_is_the_newest_version(known: list[str], asked: str, found: str) -> None:
    """One without a version comes first; versions are compared number by number."""
    found_names, _ = names(*known)

    assert found_names.controller(asked).name == found


def test_each_is_loaded_once() -> None:
    """Asking again gives the same program; one that is loaded already is given as it is."""
    found, loaded = names("c@1")

    assert found.controller("c") is found.controller("c@1")
    assert loaded == ["c@1"]
    ready = program("ready")
    assert ProgramNames({"x": ready}, lambda *_: program("never")).controller("x") is ready


@pytest.mark.parametrize("asked", ["d", "c@2", "", "@1", "c@"])
def test_unknown_names_are_refused(asked: str) -> None:
    """The error lists what there is."""
    found, _ = names("c@1", "e")

    with pytest.raises(ProgramError) as caught:
        found.controller(asked)
    assert caught.value.code == "not_found"
    assert "c@1, e" in caught.value.hint


def test_an_inferlet_is_no_controller() -> None:
    """It is refused by name."""
    found, _ = names("inferlet")

    with pytest.raises(ProgramError, match="'inferlet' is an inferlet, not a controller"):
        found.controller("inferlet")
