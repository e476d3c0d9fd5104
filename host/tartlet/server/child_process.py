"""What a child of the front does to itself as it starts: it goes with its parent, and gives up rights."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

from tartlet.server.system_calls import OTHER_PROCESSES, OTHER_PROGRAMS, forbid

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

_MOST_FILES = 1024
"""Of a worker: its sockets, what Wasmtime maps, and files that it reads."""

_OOM_SCORE = 500
"""Of -1000 to 1000. When memory runs out, a worker goes before the engine, which has the model, and the front."""


def end_with_parent(parent_pid: int) -> None:
    """Let the system kill this process when its parent ends, however that happens. Elsewhere than on Linux: nothing.

    Args:
        parent_pid: Who the parent is; if it has ended already, so does this process.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        sys.exit("the process that started this one is gone")


def keep_private() -> None:
    """Keep what is in memory from other processes of the same user, from core dumps, and new files from other users."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)


def give_up_rights() -> bool:
    """Give up what a worker need not have: the network, other programs and processes, many files, a claim to memory.

    To be called while there is one thread. Returns whether the kernel can take system calls away; the rest it can.

    Address space is not limited: Wasmtime reserves gigabytes of it for each instance, to catch what is out of bounds,
    and touches next to nothing of them. A limit would have to be terabytes, and bound nothing. What is used of memory
    is bounded by the limits of runs, and by what the operator's system allows the server.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST_FILES if most == resource.RLIM_INFINITY else min(_MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with contextlib.suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    return forbid(("io_uring_setup", *OTHER_PROGRAMS, *OTHER_PROCESSES), other_sockets_than_unix=True)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl {option} is refused")
