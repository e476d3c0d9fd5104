"""What a compile child does, in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchmarks.controller_fixture import controller
from tartlet.component_limits import ComponentLimits
from tartlet.server.compile.child import answer
from tartlet.server.compile.messages import CompileAnswer, CompileJob, CompileLimits
from tests import hostile_components as hostile

Uploaded = Callable[[bytes], Path]


def job_for(path: Path, parent: int = 0, **limits: int) -> CompileJob:
    """A job for a file."""
    return CompileJob(path=str(path), component=ComponentLimits(**limits), limits=CompileLimits(), parent=parent)


def test_a_controller(home: Path, uploaded: Uploaded) -> None:
    """It is told from an inferlet, and its interfaces are listed."""
    compiled = answer(job_for(uploaded(controller()))).compiled

    assert compiled is not None
    assert (compiled.facts.is_inferlet, compiled.facts.is_controller) == (False, True)
    assert len(list((home / "components").iterdir())) == 1


def test_each_tenant_has_limits_of_its_own(home: Path, uploaded: Uploaded) -> None:
    """They come with the job."""
    path = uploaded(hostile.inferlet_with(hostile.functions(100)))

    refused = answer(job_for(path, max_functions=50)).failure
    assert refused is not None
    assert refused.code == "too_many_functions"
    assert answer(job_for(path)).failure is None


def test_a_large_file_is_not_read(home: Path, tmp_path: Path) -> None:
    """Its size alone refuses it."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    failure = answer(job_for(path)).failure
    assert failure is not None
    assert failure.code == "component_too_large"


@pytest.mark.parametrize("is_parent", [True, False])
def test_the_process(home: Path, uploaded: Uploaded, is_parent: bool) -> None:
    """It answers in one line of JSON; without the parent that asked, it does nothing."""
    job = job_for(uploaded(hostile.inferlet()), os.getpid() if is_parent else os.getppid())
    command = [sys.executable, "-P", "-m", "tartlet.server.compile"]
    done = subprocess.run(command, input=msgspec.json.encode(job), capture_output=True, check=False)

    assert (done.returncode == 0) == is_parent
    if is_parent:
        assert done.stdout.count(b"\n") == 1
        assert msgspec.json.decode(done.stdout, type=CompileAnswer).compiled is not None
    else:
        assert done.stdout == b""
