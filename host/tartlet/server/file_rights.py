"""Takes files away from a process for good: what it may read and write is said by folder, whoever owns the files.

It is Landlock (the kernel's Documentation/userspace-api/landlock.rst), which needs no privileges, and Linux 5.13. From
6.12 on, the process cannot send signals to others either.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tartlet import paths

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # on all architectures
_VERSION, _PATH_BENEATH = 1, 1

_RUN, _READ, _LIST = 1, 1 << 2, 1 << 3
_MOVE, _TRUNCATE = 1 << 13, 1 << 14
_OF_FOLDERS = 0x1FF8 | _MOVE  # to list, to make, to remove, to move
_RIGHTS = ((1, 0x1FFF), (2, _MOVE), (3, _TRUNCATE))  # by the version that knows them
_ALL_TO_READ = _RUN | _READ | _LIST
_PR_SET_NO_NEW_PRIVS = 38
_SIGNALS_AND_ABSTRACT_SOCKETS = 3  # from version 6 on


def restrict_files(*, hidden: Sequence[Path], readable: Sequence[Path] = (), writable: Sequence[Path] = ()) -> bool:
    """Let this process read all but what is hidden, and write nowhere. Returns whether the kernel can do that.

    To be called while there is one thread. What is made later beside a folder that is hidden, or beside one above it,
    cannot be read either.

    Args:
        hidden: Files and folders, which need not exist.
        readable: Files and folders, in what is hidden, that can be read all the same.
        writable: Folders in which files can be read, made, changed and removed.
    """
    version = _call(_CREATE, None, 0, _VERSION) if sys.platform == "linux" else -1
    if version < 1:
        return False
    rights = sum(each for least, each in _RIGHTS if version >= least)
    scope = struct.pack("=QQ", 0, _SIGNALS_AND_ABSTRACT_SOCKETS) if version >= 6 else b""  # nothing of the network
    attributes = struct.pack("=Q", rights) + scope
    rules = _call(_CREATE, attributes, len(attributes), 0)
    if rules < 0:
        return False
    try:
        for path in (*_all_but({path.resolve() for path in hidden}, Path("/")), *readable):
            _allow(rules, path, _ALL_TO_READ)
        for path in writable:
            _allow(rules, path, rights)
        _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return _call(_RESTRICT, rules, 0) == 0
    finally:
        os.close(rules)


def private_paths() -> list[Path]:
    """What of TARTLET_HOME is not for those who run or compile programs."""
    database_and_uploads, settings_with_passwords = paths.server_folder(), paths.home() / "server.toml"
    return [database_and_uploads, settings_with_passwords, paths.saved_folder()]


def _all_but(hidden: set[Path], folder: Path) -> Iterator[Path]:
    """What lies in a folder and is not hidden: whole folders, as far as nothing in them is."""
    above = {parent for path in hidden for parent in path.parents}
    for path in folder.iterdir():
        if path in above:
            yield from _all_but(hidden, path)
        elif path not in hidden:
            yield path


def _allow(rules: int, path: Path, rights: int) -> None:
    """Add a rule. What a link leads to is allowed where it lies, or not at all."""
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it is gone
        return
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISLNK(mode):
            return
        allowed = rights if stat.S_ISDIR(mode) else rights & ~_OF_FOLDERS
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, handle), 0)
    finally:
        os.close(handle)


def _call(number: int, *arguments: int | bytes | None) -> int:
    """A system call; -1 if it fails."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return int(_libc().syscall(ctypes.c_long(number), *given))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
