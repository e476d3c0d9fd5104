"""Programs that are built before they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tartlet.errors import BuildError
from tartlet.languages.built import built_component
from tartlet.languages.python import PYTHON
from tartlet.progress import Progress, silent


def test_a_component_lies_apart_from_its_source(tmp_path: Path, own_home: Path) -> None:
    """Each program has a place of its own in Tartlet's folder, and building again writes there again."""

    def copy(source: Path, output: Path, progress: Progress) -> None:
        output.write_text(source.read_text())

    language = replace(PYTHON, build_component=copy)
    components = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.c").write_text(name)
        components.append(built_component(tmp_path / name / "same.c", language, silent))
    (tmp_path / "a" / "same.c").write_text("changed")

    assert built_component(tmp_path / "a" / "same.c", language, silent) == components[0]
    assert [component.read_text() for component in components] == ["changed", "b"]
    assert all(component.is_relative_to(own_home) and component.suffix == ".wasm" for component in components)


def test_a_failed_build_is_told(tmp_path: Path) -> None:
    """What was built before is not taken for it."""

    def fail(source: Path, output: Path, progress: Progress) -> None:
        raise BuildError("no such luck")

    with pytest.raises(BuildError, match="no such luck"):
        built_component(tmp_path, replace(PYTHON, build_component=fail), silent)
