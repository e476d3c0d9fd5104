"""What the front and a worker say to each other. Loads neither Wasmtime nor torch: both sides import it.

The front numbers runs; a number is used once in the life of a worker.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tartlet.events import LogLevel, RunUsage
from tartlet.server.failures import Failure
from tartlet.server.requests import RunRequest

MOST_BYTES = 64 << 20
"""Of one message. A request's input is bounded by the front; what a program says is cut or refused by the worker."""

MAX_RESULT_BYTES = 2 << 20
"""Of what a program returns, as JSON."""

MAX_TEXT_BYTES = 1 << 20
"""Of one `Printed`. Output that has waited is merged, and comes in pieces of this size."""

MAX_FAILURE_CHARS = 1 << 16
"""Of an error's message: of a program's own, the end is cut off."""

BEAT_S = 1.0
"""A worker says that often that it is there, and what its runs have used."""


class _Message(msgspec.Struct, frozen=True, array_like=True):
    """A message is an array: its tag, and its fields in order."""


# ---- From the front ----


class UseEngine(_Message, frozen=True, tag="engine"):
    """There is a new engine. What the worker had of another is over."""

    engine: int
    """Counts the engines since the server was started."""
    socket: str
    """The path of its socket."""


class Start(_Message, frozen=True, tag="start"):
    """Start a run. It has begun; `Ended` comes in any case."""

    number: int
    request: RunRequest
    grant: bytes
    """To act for the run's tenant at the engine."""


class Cancel(_Message, frozen=True, tag="cancel"):
    """End a run. No effect if it is over."""

    number: int


ToWorker: TypeAlias = UseEngine | Start | Cancel


# ---- From a worker ----


class Attached(_Message, frozen=True, tag="attached"):
    """The worker can run programs on that engine; None: for now on none."""

    engine: int | None


class Printed(_Message, frozen=True, tag="o"):
    """A run's `tartlet.Output`."""

    number: int
    text: str


class Logged(_Message, frozen=True, tag="l"):
    """A run's `tartlet.Log`."""

    number: int
    level: LogLevel
    message: str


class Written(_Message, frozen=True, tag="v"):
    """A run's `tartlet.Variable`."""

    number: int
    name: str
    value: str
    version: int


class Ended(_Message, frozen=True, tag="ended"):
    """The last of a run: what it has used, and its result as JSON or why there is none."""

    number: int
    usage: RunUsage
    outcome: str | Failure


class Beat(_Message, frozen=True, tag="beat"):
    """The worker is there. With the usage, so far, of runs that have used more since the last."""

    usages: list[tuple[int, RunUsage]]


ToFront: TypeAlias = Attached | Printed | Logged | Written | Ended | Beat
