"""What a compile child takes away from itself before it looks at what somebody has uploaded."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from tartlet.server.child_process import end_with_parent, keep_private
from tartlet.server.compile.messages import CompileJob
from tartlet.server.file_rights import private_paths, restrict_files
from tartlet.server.system_calls import NEW_SOCKETS, OTHER_PROCESSES, OTHER_PROGRAMS, forbid

_NICE = 10
_MOST_TOOL_FILE_BYTES = 1 << 26


def confine(job: CompileJob) -> None:
    """Limit this process for good: CPU time, memory; no network, no other programs. It must have one thread.

    Of what tenants have, it can read the program and use the folder for what it makes; it can write nowhere else.
    Ends the process if the parent is gone already.
    """
    limits = job.limits
    end_with_parent(job.parent)
    keep_private()
    os.nice(_NICE)
    writable = [Path(job.folder), Path("/dev/null")]
    restrict_files(hidden=private_paths(), readable=[Path(job.path)], writable=writable)
    forbid((*NEW_SOCKETS, *OTHER_PROGRAMS, *OTHER_PROCESSES))
    # At the soft limit of CPU time the kernel ends the process by SIGXCPU, by which the parent tells the reason.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    # A sandbox reserves more addresses than any machine has memory. What is only reserved is no data.
    memory = resource.RLIMIT_DATA if job.kind == "source" else resource.RLIMIT_AS
    for limit, value in ((memory, limits.memory_bytes), (resource.RLIMIT_FSIZE, limits.file_bytes)):
        resource.setrlimit(limit, (value, value))


def confine_tool(job: CompileJob, parent: int) -> None:
    """Limit a process that is about to become a tool of a compile child, as `confine` does; it may start itself.

    Args:
        job: Whose limits it has.
        parent: The compile child, with which it ends.
    """
    limits = job.limits
    end_with_parent(parent)
    os.nice(_NICE)
    forbid((*NEW_SOCKETS, *OTHER_PROCESSES))
    for limit, value in (
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_DATA, limits.memory_bytes),  # a runtime with a garbage collector reserves more addresses
        (resource.RLIMIT_FSIZE, min(limits.file_bytes, _MOST_TOOL_FILE_BYTES)),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
