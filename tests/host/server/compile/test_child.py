"""What a compile child does, in this process and in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tartlet.component_limits import ComponentLimits
from tartlet.server.compile.child import answer
from tartlet.server.compile.messages import CompileAnswer, CompileJob, CompileLimits
from tartlet.server.requests import ProgramKind
from tests import hostile_components as hostile

Uploaded = Callable[[bytes], Path]


def unconfined(job: CompileJob) -> None:
    """These tests go on in this process."""


def job_for(path: Path, folder: Path, parent: int = 0, kind: ProgramKind = "component") -> CompileJob:
    """A job for a file."""
    return CompileJob(
        path=str(path),
        kind=kind,
        folder=str(folder),
        component=ComponentLimits(),
        limits=CompileLimits(),
        parent=parent,
    )


@pytest.mark.runner
def test_either_kind_is_compiled_or_refused(home: Path, uploaded: Uploaded) -> None:
    """By what the job says that it is."""
    component, source = hostile.inferlet(), b'{"main": "main", "files": {"main.py": "def main(): return 1"}}'

    assert answer(job_for(uploaded(component), home), unconfined).compiled is not None
    for data, kind, code in ((source, "component", "not_a_component"), (source, "source", "no_inferlet")):
        failure = answer(job_for(uploaded(data), home, kind=kind), unconfined).failure  # type: ignore[arg-type]
        assert failure is not None
        assert failure.code == code


@pytest.mark.parametrize("is_parent", [True, False])
def test_the_process(home: Path, uploaded: Uploaded, is_parent: bool) -> None:
    """It answers in one line of JSON; without the parent that asked, it does nothing."""
    job = job_for(uploaded(hostile.inferlet()), home, os.getpid() if is_parent else os.getppid())
    command = [sys.executable, "-P", "-m", "tartlet.server.compile"]
    done = subprocess.run(command, input=msgspec.json.encode(job), capture_output=True, check=False)

    assert (done.returncode == 0) == is_parent
    if is_parent:
        assert done.stdout.count(b"\n") == 1
        assert msgspec.json.decode(done.stdout, type=CompileAnswer).compiled is not None
    else:
        assert done.stdout == b""
