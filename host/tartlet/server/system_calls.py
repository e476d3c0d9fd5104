"""Takes system calls away from a process for good, so that code that breaks out of it finds less to do.

It is a seccomp filter (the kernel's Documentation/userspace-api/seccomp_filter.rst), which needs no privileges. What is
forbidden fails with EPERM; calls of another architecture than the process's own end it.
"""

from __future__ import annotations

import ctypes
import platform
import socket
import struct
from collections.abc import Sequence

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of classic BPF
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # in `struct seccomp_data`, of little-endian machines
_ALLOW, _FAIL_WITH_EPERM, _END = 0x7FFF0000, 0x00050001, 0x80000000
_OTHER_ABI = 0x40000000  # numbers of x86-64's x32 begin here

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {
    "x86_64": {
        "socket": 41,
        "execve": 59,
        "execveat": 322,
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "io_uring_setup": 425,
    },
    "aarch64": {
        "socket": 198,
        "execve": 221,
        "execveat": 281,
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "io_uring_setup": 425,
    },
}

NEW_SOCKETS = ("socket", "io_uring_setup")
"""Without these, a process has the connections that it has."""
OTHER_PROGRAMS = ("execve", "execveat")
OTHER_PROCESSES = ("ptrace", "process_vm_readv", "process_vm_writev")


def forbid(names: Sequence[str], *, other_sockets_than_unix: bool = False) -> bool:
    """Forbid system calls to this thread and all that it starts. Returns whether the kernel can do that.

    To be called while there is one thread.

    Args:
        names: Of the system calls.
        other_sockets_than_unix: Forbid making them, too; Unix sockets can still be made.
    """
    machine = platform.machine()
    if machine not in _NUMBERS:
        return False
    numbers = _NUMBERS[machine]
    unix_only = numbers["socket"] if other_sockets_than_unix else None
    instructions = _filter(_ARCHITECTURES[machine], [numbers[name] for name in names], unix_only)
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    # struct sock_fprog: a length, and where the instructions are.
    header = ctypes.create_string_buffer(struct.pack("HP", len(instructions), ctypes.addressof(program)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_void_p(ctypes.addressof(header)), 0, 0) == 0)


def _filter(architecture: int, numbers: Sequence[int], unix_only: int | None) -> list[tuple[int, int, int, int]]:
    """Instructions: each a code, how many to skip if true, how many if false, and a constant.

    Args:
        architecture: Of the calls that are expected.
        numbers: Of calls that are forbidden.
        unix_only: The number of the call whose first argument must be `AF_UNIX`.
    """
    check = []
    if unix_only is not None:
        check = [
            (_JUMP_IF_EQUAL, 0, 2, unix_only),
            (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
            (_JUMP_IF_EQUAL, 0, 1, socket.AF_UNIX),
        ]
    last = len(numbers) + len(check)  # where it is allowed; the next is where it is not
    return [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _END),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_AT_LEAST, last + 1, 0, _OTHER_ABI),
        *((_JUMP_IF_EQUAL, last - index, 0, number) for index, number in enumerate(numbers)),
        *check,
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL_WITH_EPERM),
    ]
