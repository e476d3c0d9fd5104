"""A child process: started with what it may have, its log read, and ended with all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from tartlet.progress import Progress
from tartlet.server.front.processes.child_log import ChildLog

_LOG_PATIENCE_S = 1.0


class Child:
    """A Python module that runs in a process of its own. Made by `Child.start`; `stop` must be called."""

    def __init__(self, process: asyncio.subprocess.Process, log: ChildLog, pipe: asyncio.BaseTransport) -> None:
        self._process = process
        self._log = log
        self._pipe = pipe

    @classmethod
    async def start(
        cls,
        name: str,
        module: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
        progress: Progress | None = None,
    ) -> Child:
        """Start `python -m module --parent <this process> arguments...`.

        It is the leader of a session and a process group: what is typed at a terminal does not reach it.

        Args:
            name: What it is called in the log.
            module: What it runs.
            arguments: Everybody on the machine can read them.
            environment: All that it gets.
            inherited: File descriptors that it gets, under the same numbers.
            progress: Hears how far it is with its set-up; None: what it says of that is in the log.

        Raises OSError if it cannot be started.
        """
        reading, writing = os.pipe()
        with open(writing, "wb", buffering=0) as child_end:
            pipe, log = await _read_log(name, reading, progress)
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # modules of the folder in which the server happens to be started are not for it
                    "-m",
                    module,
                    f"--parent={os.getpid()}",
                    *arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=child_end,
                    stderr=child_end,
                    env=dict(environment),
                    pass_fds=inherited,
                    start_new_session=True,
                )
            except BaseException:
                pipe.close()
                raise
        return cls(process, log, pipe)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def wait(self) -> None:
        """Wait for its end."""
        await self._process.wait()

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, patience_s: float) -> None:
        """Ask it to end, and make it end after some seconds, with all that it has started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)  # `terminate` would take the exit status from asyncio's own watcher
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._process.wait()
        self.kill()
        await self._process.wait()
        with contextlib.suppress(TimeoutError):  # who has left the group may keep the pipe open
            async with asyncio.timeout(_LOG_PATIENCE_S):
                await self._log.ended()
        self._pipe.close()

    @property
    def status(self) -> int | None:
        """Its exit status, negative for the signal that has ended it; None while it is running."""
        return self._process.returncode

    @property
    def end(self) -> str:
        """How it ended, in words, with what it said last."""
        status = self._process.returncode
        if status is None:
            how = "is running"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        last = self._log.last_lines
        return f"{how}; it said last:\n{last}" if status and last else how


async def _read_log(name: str, reading: int, progress: Progress | None) -> tuple[asyncio.BaseTransport, ChildLog]:
    loop = asyncio.get_running_loop()
    return await loop.connect_read_pipe(lambda: ChildLog(name, progress=progress), open(reading, "rb", buffering=0))
