"""An engine at the other end of a socket, as a host knows it."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from tartlet import compose
from tartlet.errors import EngineStoppedError, WireError
from tartlet.server.engine.messages import (
    MOST_BYTES,
    AskStats,
    CheckIntegrity,
    Events,
    FromEngine,
    Hello,
    IntegrityChecked,
    Pong,
    Refused,
    ShowGrant,
    Stats,
    Submit,
    Totals,
    Welcome,
)
from tartlet.server.wire.connections import Connection, connect
from tartlet.testing import ByteText
from tartlet_engine.api import (
    Command,
    EngineError,
    EngineStats,
    EngineStopped,
    ErrorCode,
    Event,
    Failed,
    ModelInfo,
    ModelText,
    failed_id,
)

_log = logging.getLogger(__name__)

STATS_SECONDS = 0.25
"""For so long counters are waited for; then the last ones known are given."""

Listener = Callable[[list[Event]], None]


class SocketClient:
    """An `EngineClient` whose engine is in another process. `connect_engine` makes one.

    Its listener is called on a thread of this process that reads the socket. When the connection is lost, it hears
    `EngineStopped`, as it does when it begins to listen afterwards.
    """

    def __init__(
        self, connection: Connection[FromEngine], welcome: Welcome, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        self._connection = connection
        self._on_lost = on_lost
        self._models = {info.name: info for info in welcome.models}
        self._texts = {
            info.name: _text_side(folder) for info, folder in zip(welcome.models, welcome.text_folders, strict=True)
        }
        self._ids = itertools.count(welcome.first_id + 1)
        self._request_ids = itertools.count(1)
        self._lock = threading.RLock()  # guards what follows; the listener is called with it
        self._listener: Listener | None = None
        self._stopped: EngineStopped | None = None
        self._requests: dict[int, Future[FromEngine]] = {}
        self._stats: EngineStats | None = None  # the last ones known
        self._shown: set[ShowGrant] = set()
        self._thread = threading.Thread(target=self._read, name="tartlet-engine-socket", daemon=True)
        self._thread.start()

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """The engine's models by name, the default first."""
        return self._models

    def text(self, model: str) -> ModelText:
        """Return the text side of a model, which is in this process. Raises KeyError for a name that is not loaded."""
        return self._texts[model]

    def new_id(self) -> int:
        """Return the next of the ids that are this connection's."""
        return next(self._ids)

    def show_grant(self, tenant: str, weight: float, grant: bytes) -> None:
        """Let the engine know that this connection may open runs of a tenant. It is told once of each."""
        shown = ShowGrant(tenant, weight, grant)
        with self._lock:
            if shown in self._shown:
                return
            self._shown.add(shown)
        with contextlib.suppress(WireError):  # it is gone, which the reading thread hears
            self._connection.send(shown)

    def submit(self, commands: Sequence[Command], run_id: int | None = None) -> None:
        """Send commands. When the engine is gone they are dropped. One that cannot be sent fails."""
        try:
            self._connection.send(Submit(tuple(commands), run_id))
        except WireError as error:
            if error.code in ("closed", "slow_reader"):
                return  # the reading thread hears of it, too
            if len(commands) == 1:
                refusal = EngineError(ErrorCode.INVALID_ARGUMENT, error.message)
                self._deliver([Failed(failed_id(commands[0]), refusal)])
                return
            for command in commands:
                self.submit([command], run_id)

    def listen(self, listener: Listener | None) -> None:
        """Set who hears of events, on a thread of this client's. Raises RuntimeError if somebody else does."""
        with self._lock:
            if listener is not None and self._listener is not None:
                raise RuntimeError("somebody listens to this engine already")
            self._listener = listener
            if self._stopped is not None:
                self._deliver([self._stopped])

    def stats(self) -> EngineStats:
        """Return the counters as of the last step; if the engine's process does not answer soon, those known last.

        Raises EngineStoppedError if none are known, and the engine is gone or does not answer.
        """
        try:
            answer = self._ask(AskStats, STATS_SECONDS)
        except (TimeoutError, EngineStoppedError) as error:
            with self._lock:
                if self._stats is not None:
                    return self._stats
            if isinstance(error, TimeoutError):
                raise EngineStoppedError("the engine's process does not answer") from None
            raise
        assert isinstance(answer, Stats)
        with self._lock:
            self._stats = answer.stats
        return answer.stats

    def check_integrity(self) -> None:
        """Raise AssertionError unless everything adds up; EngineStoppedError if the engine is gone."""
        answer = self._ask(CheckIntegrity, None)
        assert isinstance(answer, IntegrityChecked)
        if answer.problem is not None:
            raise AssertionError(answer.problem)

    def close(self) -> None:
        """Close the connection, and with it all runs. The engine goes on. Idempotent."""
        self._connection.shut_down()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _ask(self, kind: type[AskStats | CheckIntegrity], timeout_s: float | None) -> FromEngine:
        """Ask, and wait for the answer. Not on the reading thread, which would have to bring it."""
        if threading.current_thread() is self._thread:
            raise TimeoutError
        request_id, future = next(self._request_ids), Future[FromEngine]()
        with self._lock:
            if self._stopped is not None:
                raise _stopped_error(self._stopped)
            self._requests[request_id] = future
        try:
            self._connection.send(kind(request_id))
            return future.result(timeout_s)
        except WireError:
            return future.result()  # the reading thread hears that the connection is closed, and says so
        finally:
            with self._lock:
                self._requests.pop(request_id, None)

    # ---- The reading thread ----

    def _read(self) -> None:
        reason = "the connection to the engine's process was lost"
        try:
            while True:
                match self._connection.receive():
                    case Events(events):
                        self._deliver(list(events))
                    case Stats(request_id) | IntegrityChecked(request_id) as answer:
                        self._answer(request_id, answer)
                    case Refused(message):
                        reason = f"the engine's process has refused to go on: {message}"
                    case Welcome() | Pong() | Totals():
                        pass  # nobody has asked
        except WireError as error:
            if error.code != "closed":
                reason = f"{reason}: {error.message}"
        finally:
            self._connection.close()
            self._deliver([EngineStopped(EngineError(ErrorCode.UNAVAILABLE, reason))])
            self._on_lost()

    def _deliver(self, events: list[Event]) -> None:
        """Hand events to the listener; its own faults must not end the connection. The end is told once."""
        with self._lock:
            for event in events:
                if isinstance(event, EngineStopped):
                    if self._stopped is not None and self._stopped is not event:
                        return
                    self._stopped = event
                    self._fail_requests(event)
            if self._listener is None:
                return
            try:
                self._listener(events)
            except Exception:
                _log.exception("the listener failed on %d events", len(events))

    def _answer(self, request_id: int, answer: FromEngine) -> None:
        with self._lock:
            future = self._requests.pop(request_id, None)
        if future is not None:
            future.set_result(answer)

    def _fail_requests(self, event: EngineStopped) -> None:
        requests, self._requests = self._requests, {}
        for future in requests.values():
            future.set_exception(_stopped_error(event))


def connect_engine(path: Path, on_lost: Callable[[], None] = lambda: None) -> SocketClient:
    """Connect to the engine that is served at a socket, and load the text side of its models: 0.1 to 0.4 s.

    Args:
        path: Of the socket.
        on_lost: Called on another thread when the connection is lost or closed.

    Raises:
        EngineStoppedError: Nobody serves one there, or it refuses.
        ModelError: A tokenizer cannot be loaded.
    """
    try:
        connection: Connection[FromEngine] = connect(path, FromEngine, most_frame=MOST_BYTES)
    except WireError as error:
        raise EngineStoppedError(f"there is no engine at {path}: {error.message}") from None
    try:
        with contextlib.suppress(WireError):  # who refuses may have hung up; why can be read
            connection.send(Hello())
        welcome = connection.receive()
        if not isinstance(welcome, Welcome):
            reason = welcome.message if isinstance(welcome, Refused) else "it does not welcome anybody"
            raise EngineStoppedError(f"the engine at {path} refuses: {reason}")
        return SocketClient(connection, welcome, on_lost)
    except BaseException as error:
        connection.close()
        if isinstance(error, WireError):
            raise EngineStoppedError(f"the engine at {path} is gone: {error.message}") from None
        raise


def _text_side(folder: str | None) -> ModelText:
    return ByteText() if folder is None else compose.model_text(folder)


def _stopped_error(event: EngineStopped) -> EngineStoppedError:
    return EngineStoppedError(event.error.message, hint=event.error.hint)
