"""One connection to the engine, and what has been opened on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from tartlet.errors import WireError
from tartlet.server.engine.command_ids import foreign_id
from tartlet.server.engine.grants import Grants
from tartlet.server.engine.lost_runs import LostRuns
from tartlet.server.engine.messages import (
    NUM_IDS,
    PROTOCOL,
    AskStats,
    AskTotals,
    CheckIntegrity,
    Events,
    FromEngine,
    Hello,
    IntegrityChecked,
    Ping,
    Pong,
    Refused,
    ShowGrant,
    Stats,
    Submit,
    ToEngine,
    Totals,
    Welcome,
)
from tartlet.server.engine.pinger import Pinger
from tartlet.server.wire.connections import Connection
from tartlet_engine.api import CloseRun, Command, EngineClient, Event, OpenRun, PublishPrefix, UnpublishPrefix

_log = logging.getLogger(__name__)

MOST_PINGS = 16
"""That one connection may wait for."""


class Session:
    """Serves one connection. `serve` is its thread's life; `deliver` is called on the engine's thread.

    Args:
        connection: To a worker, or to whoever asks for counters.
        engine: What is served.
        pinger: That of the engine.
        lost_runs: Where it is kept what its runs had used, if it is lost.
        welcome: What is told to begin with; it says which ids are this connection's.
        grants: Of this connection.
    """

    def __init__(
        self,
        connection: Connection[ToEngine],
        engine: EngineClient,
        pinger: Pinger,
        lost_runs: LostRuns,
        welcome: Welcome,
        grants: Grants,
    ) -> None:
        self._connection = connection
        self._engine = engine
        self._pinger = pinger
        self._lost_runs = lost_runs
        self._welcome = welcome
        self._grants = grants
        self._ids = range(welcome.first_id, welcome.first_id + NUM_IDS)
        self._runs: dict[int, str] = {}  # their names, by id
        self._prefixes: set[int] = set()
        self._num_pings = 0
        self._pings_lock = threading.Lock()

    def serve(self) -> None:
        """Do what is asked until the connection is lost; then free everything that was opened on it."""
        try:
            self._greet(self._connection.receive())
            while True:
                self._carry_out(self._connection.receive())
        except WireError as error:
            if error.code != "closed":
                _log.warning("connection=%d is closed: %s", self._welcome.first_id // NUM_IDS, error.message)
        finally:
            self._connection.close()
            self._free()

    def deliver(self, events: Sequence[Event]) -> None:
        """Send what a step has produced. Does not wait; who does not read is hung up on."""
        try:
            self._connection.send(Events(tuple(events)))
        except WireError as error:
            if error.code == "frame_too_large" and len(events) > 1:
                half = len(events) // 2
                self.deliver(events[:half])
                self.deliver(events[half:])
                return
            if error.code != "closed":
                _log.warning("connection=%d: %s", self._welcome.first_id // NUM_IDS, error.message)
            self.hang_up()  # what waits for the events would wait for ever

    def hang_up(self) -> None:
        """End the connection, from any thread."""
        self._connection.shut_down()

    def _greet(self, message: ToEngine) -> None:
        if not isinstance(message, Hello):
            self._refuse("the first message must be Hello")
        elif message.protocol != PROTOCOL:
            self._refuse(f"the protocol is {PROTOCOL}, not {message.protocol}")
        self._connection.send(self._welcome)

    def _carry_out(self, message: ToEngine) -> None:
        match message:
            case Submit(commands, run_id):
                self._check(commands, run_id)
                self._note(commands)
                self._engine.submit(commands, run_id)
            case ShowGrant(tenant, weight, grant):
                self._grants.show(tenant, weight, grant)
            case AskStats(request_id):
                self._connection.send(Stats(request_id, self._engine.stats()))
            case AskTotals(request_id, names):
                self._connection.send(Totals(request_id, self._lost_runs.take(names)))
            case Ping(request_id):
                self._ping(request_id)
            case CheckIntegrity(request_id):
                self._connection.send(IntegrityChecked(request_id, self._problem()))
            case Hello():
                self._refuse("Hello comes once")

    def _check(self, commands: Sequence[Command], run_id: int | None) -> None:
        """Refuse ids of others, and what there is no grant for, before anything is carried out."""
        if run_id is not None and run_id not in self._ids:
            self._refuse(f"id {run_id} is not of this connection")
        for command in commands:
            foreign = foreign_id(command, self._ids)
            if foreign is not None:
                self._refuse(f"{type(command).__name__} names id {foreign}, which is not of this connection")
            refusal = self._grants.refusal(command)
            if refusal is not None:
                self._refuse(f"{type(command).__name__}: {refusal}")

    def _note(self, commands: Sequence[Command]) -> None:
        """Remember what has to be closed when the connection is lost."""
        for command in commands:
            match command:
                case OpenRun():
                    self._runs[command.run_id] = command.name
                case CloseRun():
                    self._runs.pop(command.run_id, None)
                case PublishPrefix():
                    self._prefixes.add(command.prefix_id)
                case UnpublishPrefix():
                    self._prefixes.discard(command.prefix_id)

    def _ping(self, request_id: int) -> None:
        with self._pings_lock:
            self._num_pings += 1
            too_many = self._num_pings > MOST_PINGS
        if too_many:
            self._refuse(f"{MOST_PINGS} pings may wait for their answers")

        def answer() -> None:
            with self._pings_lock:
                self._num_pings -= 1
            self._send(Pong(request_id))

        self._pinger.ping(answer)

    def _send(self, message: FromEngine) -> None:
        try:
            self._connection.send(message)
        except WireError:
            self.hang_up()

    def _problem(self) -> str | None:
        try:
            self._engine.check_integrity()
        except AssertionError as error:
            return str(error) or "an assertion failed"
        return None

    def _refuse(self, reason: str) -> None:
        """Tell why, and end the connection. Raises WireError."""
        self._send(Refused(reason))
        raise WireError(reason, code="malformed")

    def _free(self) -> None:
        for run_id, name in self._runs.items():
            self._lost_runs.expect(run_id, name)
            self._engine.submit([CloseRun(run_id, tells_totals=True)], run_id)
        for prefix_id in self._prefixes:
            self._engine.submit([UnpublishPrefix(prefix_id)])
        self._runs.clear()
        self._prefixes.clear()
