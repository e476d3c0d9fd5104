from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.controller_fixture import controller
from tartlet.component_limits import ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.server.compile.components import compile_component
from tartlet.server.compile.messages import CompileJob, CompileLimits
from tests import hostile_components as hostile

Uploaded = Callable[[bytes], Path]


def job_for(path: Path, folder: Path, **limits: int) -> CompileJob:
    """A job for a component."""
    component = ComponentLimits(**limits)
    return CompileJob(
        path=str(path), kind="component", folder=str(folder), component=component, limits=CompileLimits(), parent=0
    )


def test_a_controller(home: Path, uploaded: Uploaded) -> None:
    """It is told from an inferlet, and its interfaces are listed."""
    compiled = compile_component(job_for(uploaded(controller()), home))

    assert (compiled.facts.is_inferlet, compiled.facts.is_controller) == (False, True)
    assert [str(path) for path in home.iterdir()] == [compiled.code_path]


def test_each_tenant_has_limits_of_its_own(home: Path, uploaded: Uploaded) -> None:
    """They come with the job."""
    path = uploaded(hostile.inferlet_with(hostile.functions(100)))

    with pytest.raises(InvalidComponentError) as refused:
        compile_component(job_for(path, home, max_functions=50))
    assert refused.value.code == "too_many_functions"
    assert compile_component(job_for(path, home)).facts.is_inferlet


def test_a_large_file_is_not_read(home: Path, tmp_path: Path) -> None:
    """Its size alone refuses it."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(InvalidComponentError) as refused:
        compile_component(job_for(path, home))
    assert refused.value.code == "component_too_large"
