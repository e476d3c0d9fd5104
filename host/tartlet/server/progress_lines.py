"""How far set-up work is, in a child: lines on its standard error, which the front takes out of the child's log."""

from __future__ import annotations

import sys
import time

import msgspec

_MARK = "PROGRESS "
_MOST_TASK_CHARS = 200
_PERIOD_S = 0.25


class Step(msgspec.Struct, frozen=True):
    """What `tartlet.progress.Progress` is called with."""

    task: str
    done: float
    total: float | None


class ProgressLines:
    """A `Progress` that writes lines: the first and the last of each task, and of the rest not too many. Any thread."""

    def __init__(self) -> None:
        self._written_s: dict[str, float] = {}  # when, by task

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note that `done` of `total` is done."""
        now = time.monotonic()
        is_last = done == total
        if not is_last and now - self._written_s.get(task, -_PERIOD_S) < _PERIOD_S:
            return
        self._written_s[task] = now
        if is_last:
            del self._written_s[task]
        line = msgspec.json.encode(Step(task, done, total)).decode()
        sys.stderr.write(f"{_MARK}{line}\n")  # in one piece: others write lines, too
        sys.stderr.flush()


def read_step(line: str) -> Step | None:
    """The step that a line tells of; None: it is another line."""
    if not line.startswith(_MARK):
        return None
    try:
        step = msgspec.json.decode(line.removeprefix(_MARK), type=Step)
    except msgspec.DecodeError:
        return None
    return msgspec.structs.replace(step, task=step.task[:_MOST_TASK_CHARS])
