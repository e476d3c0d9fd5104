"""Trying a constraint in a process of its own, which can be ended, unlike a thread.

llguidance bounds most of what a grammar can cost, but not all: the schema `{"type": "integer", "multipleOf": 999983}`
compiles for more than a minute. So each text is compiled in another process first, with a limit of time and memory;
what comes through is compiled again in the engine, and takes no longer there.
"""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time

import msgspec

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.trial_child import Setup, Trial, Verdict, write
from tartlet_engine.constraints.vocabulary import Vocabulary

TIME_LIMIT_S = 3.0
MEMORY_BYTES = 512 << 20
_START_S = 120.0


class TrialLimitError(Exception):
    """A trial that came to no end within its limits."""


class Trials:
    """The process that tries constraints. It is started when it is needed. On one thread at a time."""

    def __init__(self, vocabulary: Vocabulary, time_limit_s: float, memory_bytes: int) -> None:
        """Try constraints over `vocabulary`, each within these limits."""
        self._vocabulary = vocabulary
        self._time_limit_s = time_limit_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None

    def problem(self, kind: ConstraintKind, text: str) -> str | None:
        """Return what is wrong with a constraint: the library's message; None if it can be compiled.

        Raises TrialLimitError if it takes too long or too much memory.

        Cost: some ms more than compiling it; the first one starts the process, 0.3 s.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            write(process.stdin.fileno(), Trial(kind, text, self._time_limit_s))
            return self._answer(process, self._time_limit_s).problem
        except (TimeoutError, BrokenPipeError, EOFError) as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise TrialLimitError(f"compiling it takes more than {self._time_limit_s:g} s") from None
            megabytes = self._memory_bytes >> 20
            raise TrialLimitError(f"compiling it takes more than {megabytes} MB of memory, or crashes") from None

    def close(self) -> None:
        """End the process. Idempotent; the next trial starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tartlet_engine.constraints.trial_child"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        vocabulary = self._vocabulary
        assert self._process.stdin is not None
        try:
            write(
                self._process.stdin.fileno(),
                Setup(
                    list(vocabulary.tokens), list(vocabulary.special_ids), list(vocabulary.eos_ids), self._memory_bytes
                ),
            )
            self._answer(self._process, _START_S)
        except (TimeoutError, BrokenPipeError, EOFError) as error:
            self.close()
            raise RuntimeError("the process that tries constraints does not start") from error
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], timeout_s: float) -> Verdict:
        """Read one message. Raises TimeoutError, or EOFError if the process has ended."""
        assert process.stdout is not None
        fd, deadline = process.stdout.fileno(), time.monotonic() + timeout_s
        (length,) = struct.unpack("<I", _read_bytes(fd, 4, deadline))
        return msgspec.msgpack.decode(_read_bytes(fd, length, deadline), type=Verdict)


def _read_bytes(fd: int, count: int, deadline: float) -> bytes:
    """Read so many bytes until a time of the monotonic clock."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    parts = bytearray()
    while len(parts) < count:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(fd, count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
