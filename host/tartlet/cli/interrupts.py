"""What Ctrl-C does to `tartlet run`: it ends the process at once, unless a run is going on, which it cancels."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from tartlet.cli.errors import CANCELLED


@contextlib.contextmanager
def ending_the_process(tidy: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C call `tidy` and end the process without waiting for its threads.

    A model that is being loaded or a component that is being compiled cannot be interrupted otherwise, and nothing is
    lost: what they write takes its name when it is whole. Main thread only.
    """

    def end(*_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the signal came in the middle of a write to the terminal
            tidy()
        os.write(2, b"cancelled\n")
        os._exit(CANCELLED)

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def cancelling(cancel: Callable[[], None]) -> Iterator[None]:
    """Within `ending_the_process`: let the first Ctrl-C cancel a run, which then ends like any other."""
    loop = asyncio.get_running_loop()
    end = signal.getsignal(signal.SIGINT)

    def first() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, end)
        cancel()

    loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, end)
