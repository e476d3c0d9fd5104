"""What a compile child may not do."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os, resource, socket, sys
from tartlet.server.compile.confinement import confine
from tartlet.server.compile.messages import CompileLimits

confine(CompileLimits(cpu_s=7, memory_bytes=2**29, file_bytes=1000), int(sys.argv[1]))
for name in ("CPU", "AS", "FSIZE", "CORE"):
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


def test_limits_hold_for_good() -> None:
    """Of CPU time, memory and files; no core dumps, no sockets, and others go first."""
    command = [sys.executable, "-c", PROGRAM, str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        "CPU 7 8",
        f"AS {2**29} {2**29}",
        "FSIZE 1000 1000",
        "CORE 0 0",
        "socket Operation not permitted",
        "no memory",
        f"nice {os.nice(0) + 10}",
    ]


def test_a_parent_that_is_gone() -> None:
    """It ends at once."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, "1"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is gone" in done.stderr
