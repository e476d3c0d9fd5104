"""What a compile child may not do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, socket, sys
from tartlet.server.compile.confinement import confine
from tartlet.component_limits import ComponentLimits
from tartlet.server.compile.messages import CompileJob, CompileLimits

limits = CompileLimits(cpu_s=7, memory_bytes=2**29, file_bytes=1000)
kind, parent = sys.argv[1], int(sys.argv[2])
confine(CompileJob(path="", kind=kind, folder="", component=ComponentLimits(), limits=limits, parent=parent))
for name in ("CPU", "AS" if kind == "component" else "DATA", "FSIZE", "CORE"):
    print(name, *resource.getrlimit(getattr(resource, "RLIMIT_" + name)))
try:
    socket.socket()
except OSError as error:
    print("socket", error.strerror)
try:
    bytearray(2**29)
except MemoryError:
    print("no memory")
print("nice", os.nice(0))
"""


@pytest.mark.parametrize(("kind", "memory"), [("component", "AS"), ("source", "DATA")])
def test_limits_hold_for_good(kind: str, memory: str) -> None:
    """Of CPU time, memory and files; no core dumps, no sockets, and others go first."""
    command = [sys.executable, "-c", PROGRAM, kind, str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "CPU 7 8",
        f"{memory} {2**29} {2**29}",
        "FSIZE 1000 1000",
        "CORE 0 0",
        "socket Operation not permitted",
        "no memory",
        f"nice {os.nice(0) + 10}",
    ]


def test_a_tool_is_limited_before_it_starts() -> None:
    """As the child that starts it, but for starting itself: of CPU time, memory and files; it has no network."""
    program = PROGRAM.replace("import confine", "import confine_tool").replace(
        "confine(CompileJob", "confine_tool(CompileJob"
    )
    program = program.replace("parent=parent))", "parent=parent), parent)").replace("2**29)", "2**30)")
    command = [sys.executable, "-c", program, "source", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "CPU 7 7",
        f"DATA {2**29} {2**29}",
        "FSIZE 1000 1000",
        "CORE 0 0",
        "socket Operation not permitted",
        "no memory",
        f"nice {os.nice(0) + 10}",
    ]


def test_a_parent_that_is_gone() -> None:
    """It ends at once."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, "source", "1"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is gone" in done.stderr
