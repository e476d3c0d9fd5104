"""What crosses the engine's socket. The first message is `Hello`, and the first answer `Welcome`."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tartlet_engine.api import Command, EngineStats, Event, ModelInfo

PROTOCOL = 1
"""Both ends must have the same: they are of one installation."""

NUM_IDS = 1 << 44
"""That one connection may use: those from `Welcome.first_id` on. At a million in a second they last half a year."""


MOST_BYTES = 64 << 20
"""Of a message, to the engine and from it."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The beginning."""

    protocol: int = PROTOCOL


class Submit(msgspec.Struct, frozen=True, tag=True):
    """As `EngineClient.submit`. All ids are of the connection's own."""

    commands: tuple[Command, ...]
    run_id: int | None = None


class ShowGrant(msgspec.Struct, frozen=True, tag=True):
    """The connection may open runs of a tenant, with that weight: see `grants`."""

    tenant: str
    weight: float
    grant: bytes


class AskStats(msgspec.Struct, frozen=True, tag=True):
    """Answered by `Stats` at once, whatever the engine is doing."""

    request_id: int


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Answered by `Pong`, by the engine's own thread between two steps: it makes progress."""

    request_id: int


class CheckIntegrity(msgspec.Struct, frozen=True, tag=True):
    """As `EngineClient.check_integrity`, after what was submitted before. Answered by `IntegrityChecked`."""

    request_id: int


class AskTotals(msgspec.Struct, frozen=True, tag=True):
    """Answered by `Totals` at once. Who asks is told of a run once."""

    request_id: int
    names: tuple[str, ...]
    """Of runs whose connection is lost."""


class RunTotals(msgspec.Struct, frozen=True):
    """What a run has used; see `tartlet_engine.api.RunClosed`."""

    prompt_tokens: int
    generated_tokens: int
    page_ns: int


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """What there is."""

    models: tuple[ModelInfo, ...]
    text_folders: tuple[str | None, ...]
    """Of each model, where its tokenizer lies; None: it has the byte text of `tartlet.testing`."""
    first_id: int
    protocol: int = PROTOCOL


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The connection is closed now, and why."""

    message: str


class Events(msgspec.Struct, frozen=True, tag=True):
    """What a step has produced for this connection, or a part of it."""

    events: tuple[Event, ...]


class Stats(msgspec.Struct, frozen=True, tag=True):
    """The answer to `AskStats`."""

    request_id: int
    stats: EngineStats


class Pong(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Ping`."""

    request_id: int


class Totals(msgspec.Struct, frozen=True, tag=True):
    """The answer to `AskTotals`: of those of the runs that have been closed."""

    request_id: int
    totals: dict[str, RunTotals]


class IntegrityChecked(msgspec.Struct, frozen=True, tag=True):
    """The answer to `CheckIntegrity`: what does not add up, or None."""

    request_id: int
    problem: str | None


ToEngine: TypeAlias = Hello | ShowGrant | Submit | AskStats | Ping | CheckIntegrity | AskTotals
FromEngine: TypeAlias = Welcome | Refused | Events | Stats | Pong | IntegrityChecked | Totals
