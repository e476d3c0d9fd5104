"""One process at a time: a lock on a file, which the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tartlet.progress import Progress

POLL_SECONDS = 0.1


@contextmanager
def exclusive(path: Path, task: str, progress: Progress) -> Iterator[None]:
    """Hold the lock file `path`, created if needed, for the length of the block.

    While another process holds it, `progress` hears `task` once, without a total. The wait can be interrupted. The
    file stays afterwards: removing it would let two processes lock two files of one name.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _try_lock(descriptor):
            progress(task, 0, None)
            while not _try_lock(descriptor):
                time.sleep(POLL_SECONDS)
            progress(task, 1, 1)
        yield
    finally:
        os.close(descriptor)


def hold_if_free(path: Path) -> int | None:
    """Take the lock file `path`, created if needed, at once. Returns a descriptor, which holds it until it is closed.

    None: another process holds it, or another descriptor of this one.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if _try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
