"""What a child writes to its standard error, line by line into the log of the front."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

import msgspec

from tartlet.progress import Progress
from tartlet.server.progress_lines import Step, read_step

logger = logging.getLogger(__name__)

_LINE_CHARS = 1_000
_LINES_OF_A_PERIOD = 200
_PERIOD_S = 10.0
_LAST_LINES = 5
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class ChildLog(asyncio.Protocol):
    """Logs lines with the child's name before them, each cut to a length, and so many in a time: the rest is counted.

    A line that begins with the name of a level is of that level, as children's own logs are, and is logged
    without it; others are warnings.

    Args:
        name: The child's.
        now: Gives a time in seconds.
        progress: Hears how far the child is, instead of the log; None for a child that is not trusted.
    """

    def __init__(
        self, name: str, now: Callable[[], float] = time.monotonic, *, progress: Progress | None = None
    ) -> None:
        self._name = name
        self._now = now
        self._progress = progress
        self._steps: dict[str, Step] = {}  # the last of each task that is not done
        self._rest = bytearray()  # a line that is not complete
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._period_began = now()
        self._num_in_period = 0
        self._ended = asyncio.Event()

    @property
    def last_lines(self) -> str:
        """What it wrote last, for those who ask why it ended."""
        return "\n".join(self._last)

    async def ended(self) -> None:
        """Wait until nothing comes any more."""
        await self._ended.wait()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._append(line)
            self._log_line()
        self._append(rest)

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        if self._rest:
            self._log_line()
        self._tell_left_out()
        for step in [*self._steps.values()]:  # there will be no more of them
            self._tell_step(msgspec.structs.replace(step, done=1.0, total=1.0))
        self._ended.set()

    def _append(self, part: bytes) -> None:
        self._rest += part[: 4 * _LINE_CHARS - len(self._rest)]

    def _log_line(self) -> None:
        text = self._rest.decode("utf-8", "replace")[:_LINE_CHARS]
        self._rest.clear()
        line = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
        if self._progress is not None and (step := read_step(line)) is not None:
            self._tell_step(step)
            return
        self._last.append(line)
        if self._now() - self._period_began >= _PERIOD_S:
            self._tell_left_out()
            self._period_began, self._num_in_period = self._now(), 0
        self._num_in_period += 1
        if self._num_in_period <= _LINES_OF_A_PERIOD:
            level, _, rest = line.partition(" ")
            if level in _LEVELS:
                logger.log(logging.getLevelNamesMapping()[level], "%s: %s", self._name, rest)
            else:
                logger.warning("%s: %s", self._name, line)

    def _tell_step(self, step: Step) -> None:
        if step.done == step.total:
            self._steps.pop(step.task, None)
        else:
            self._steps[step.task] = step
        if self._progress is not None:
            self._progress(step.task, step.done, step.total)

    def _tell_left_out(self) -> None:
        num_left_out = self._num_in_period - _LINES_OF_A_PERIOD
        if num_left_out > 0:
            logger.warning("%s: %d more lines were left out", self._name, num_left_out)
            self._num_in_period = 0
