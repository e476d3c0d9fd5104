"""Serves one engine to many connections, each with ids of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tartlet.errors import WireError
from tartlet.server.engine.grants import Grants
from tartlet.server.engine.lost_runs import LostRuns
from tartlet.server.engine.messages import MOST_BYTES, NUM_IDS, Refused, ToEngine, Welcome
from tartlet.server.engine.pinger import Pinger
from tartlet.server.engine.session import Session
from tartlet.server.wire.connections import Connection, Listener
from tartlet_engine.api import TARGET_IDS, EngineClient, EngineError, EngineStopped, Event, RunClosed

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 256
"""At once."""
MOST_NUMBERS = 1 << 19
"""Of connections in the life of an engine: ids have 63 bits. The last one is the server's own."""


class EngineServer:
    """Listens at a socket, and routes what the engine says to whoever it is for.

    Args:
        engine: Which stays the caller's to close. The server becomes its listener.
        path: Of the socket.
        text_folders: Where the tokenizer of each model lies; None for the byte text of `tartlet.testing`.
        on_stop: Called once, on the engine's thread, when the engine has stopped and everybody has been told.
        key: With which the front makes grants; None: whoever is connected may act for each tenant.

    Raises:
        OSError: Nobody can listen at `path`.
        RuntimeError: Somebody else listens to the engine.
    """

    def __init__(
        self,
        engine: EngineClient,
        path: Path,
        text_folders: Mapping[str, str | None],
        on_stop: Callable[[EngineError], None],
        key: bytes | None = None,
    ) -> None:
        self._engine = engine
        self._models = tuple(engine.models.values())
        self._text_folders = tuple(text_folders[info.name] for info in self._models)
        self._on_stop = on_stop
        self._key = key
        first_own = (MOST_NUMBERS - 1) * NUM_IDS
        self._pinger = Pinger(engine.submit, range(first_own, first_own + NUM_IDS))
        self._lost_runs = LostRuns()
        self._lock = threading.Lock()
        self._sessions: dict[int, Session] = {}  # by number; replaced, never changed: the engine's thread reads it
        self._threads: set[threading.Thread] = set()
        self._next_number = 0
        self._listener: Listener[ToEngine] = Listener(path, ToEngine, most_frame=MOST_BYTES)
        try:
            engine.listen(self._route)
        except BaseException:
            self._listener.close()
            raise
        self._accepting = threading.Thread(target=self._accept, name="tartlet-accept", daemon=True)
        self._accepting.start()

    @property
    def num_connections(self) -> int:
        """That are open."""
        return len(self._sessions)

    def close(self) -> None:
        """Hang up on everybody, free what they held, and stop listening to the engine. Idempotent."""
        self._listener.shut_down()
        self._accepting.join()
        for session in self._sessions.values():
            session.hang_up()
        while threads := list(self._threads):
            for thread in threads:
                thread.join()
        self._engine.listen(None)

    # ---- On the engine's thread ----

    def _route(self, events: list[Event]) -> None:
        batches: dict[int, list[Event]] = {}
        for event in events:
            if isinstance(event, EngineStopped):
                self._stop(event)
                continue
            if isinstance(event, RunClosed) and self._lost_runs.note(event):
                continue
            target_id = TARGET_IDS[type(event)](event)
            number = target_id // NUM_IDS
            if number == MOST_NUMBERS - 1:
                self._pinger.handle(target_id, event)
            else:
                batches.setdefault(number, []).append(event)
        sessions = self._sessions
        for number, batch in batches.items():
            if (session := sessions.get(number)) is not None:  # else it is gone
                session.deliver(batch)

    def _stop(self, event: EngineStopped) -> None:
        for session in self._sessions.values():
            session.deliver([event])
        self._on_stop(event.error)

    # ---- On threads of their own ----

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except WireError:
                self._listener.close()
                return
            if len(self._sessions) >= MOST_CONNECTIONS or self._next_number >= MOST_NUMBERS - 1:
                self._turn_away(connection)
            else:
                self._begin(connection)

    def _turn_away(self, connection: Connection[ToEngine]) -> None:
        _log.warning("a connection is refused: there are %d", len(self._sessions))
        try:
            connection.send(Refused(f"the engine has {MOST_CONNECTIONS} connections, and takes no more"))
        except WireError:
            pass  # it has gone by itself
        finally:
            connection.close()

    def _begin(self, connection: Connection[ToEngine]) -> None:
        number = self._next_number
        self._next_number += 1
        welcome = Welcome(self._models, self._text_folders, first_id=number * NUM_IDS)
        session = Session(connection, self._engine, self._pinger, self._lost_runs, welcome, Grants(self._key))
        thread = threading.Thread(
            target=self._serve, args=(number, session), name=f"tartlet-engine-connection-{number}", daemon=True
        )
        with self._lock:
            self._sessions = {**self._sessions, number: session}
            self._threads.add(thread)
        thread.start()

    def _serve(self, number: int, session: Session) -> None:
        try:
            session.serve()
        except Exception:
            _log.exception("connection=%d failed", number)
        finally:
            with self._lock:
                self._sessions = {other: each for other, each in self._sessions.items() if other != number}
                self._threads.discard(threading.current_thread())
