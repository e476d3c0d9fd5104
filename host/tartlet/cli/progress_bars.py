"""Progress of set-up work, on stderr: bars on a terminal, one line for each finished task elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class ProgressBars:
    """A `tartlet.progress.Progress` that draws. The bars go away as soon as no task is left. Any thread.

    Args:
        tells_times: Leave a line for each task that took its time.
    """

    def __init__(self, *, tells_times: bool = True) -> None:
        self._tells_times = tells_times
        self._lock = threading.RLock()  # a signal handler may close it in the middle of a report
        self._console: Console | None = None
        self._bars: RichProgress | None = None
        self._tasks: dict[str, tuple[TaskID | None, float]] = {}

    def __call__(self, task: str, done: float, total: float | None) -> None:
        """Note that `done` of `total` is done."""
        with self._lock:
            console = self._console or self._make_console()
            if task not in self._tasks:
                known_total = total if done else None  # how fast it goes shows with the first part that is done
                self._tasks[task] = (self._add_bar(console, task, known_total), time.monotonic())
            bar, started = self._tasks[task]
            if self._bars is not None and bar is not None:
                self._bars.update(bar, completed=done, total=total if done else None)
            if total is not None and done >= total:
                self._end(console, task, time.monotonic() - started)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the bars away, and give the terminal its cursor back."""
        with self._lock:
            self._stop()

    def _make_console(self) -> Console:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        return self._console

    def _add_bar(self, console: Console, task: str, total: float | None) -> TaskID | None:
        if not console.is_terminal:
            return None
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        if self._bars is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=console, transient=True)
            self._bars.start()
        return self._bars.add_task(task, total=total)

    def _end(self, console: Console, task: str, seconds: float) -> None:
        bar, _ = self._tasks.pop(task)
        if self._bars is not None and bar is not None:
            self._bars.remove_task(bar)
        if not self._tasks:
            self._stop()
        if self._tells_times and seconds >= 0.5:  # what took no time needs no line
            console.print(f"{task}: {seconds:.1f} s", style="dim", markup=False)

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
        self._bars = None
        self._tasks.clear()
