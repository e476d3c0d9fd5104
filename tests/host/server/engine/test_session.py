"""One connection to the engine: whatever comes on it, the engine and the others go on."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartlet import compose
from tartlet.errors import WireError
from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.grants import Grants
from tartlet.server.engine.lost_runs import LostRuns
from tartlet.server.engine.messages import (
    MOST_BYTES,
    NUM_IDS,
    AskStats,
    CheckIntegrity,
    Events,
    FromEngine,
    Hello,
    IntegrityChecked,
    Ping,
    Pong,
    Refused,
    Stats,
    Submit,
    ToEngine,
    Welcome,
)
from tartlet.server.engine.pinger import Pinger
from tartlet.server.engine.session import MOST_PINGS, Session
from tartlet.server.engine.socket_client import connect_engine
from tartlet.server.wire.connections import Connection, connect
from tartlet.server.wire.frames import Frames
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet.testing import FakeEngine
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    Command,
    CreateContext,
    Done,
    EngineClient,
    Fence,
    FreeContext,
    Generate,
    OpenRun,
    PublishPrefix,
    Sampling,
)
from tests.host.server.engine.conftest import Recorder, Serve, Served, nothing_held


@contextlib.contextmanager
def connected(served: Served) -> Iterator[Connection[FromEngine]]:
    """A connection on which a test says what it likes, once it has been welcomed as number 0."""
    with closing(connect(served.path, FromEngine)) as connection:
        connection.send(Hello())
        assert isinstance(connection.receive(), Welcome)
        yield connection


def last_message(connection: Connection[FromEngine]) -> FromEngine | None:
    """The last message before the connection is closed."""
    last = None
    with contextlib.suppress(WireError):
        while True:
            last = connection.receive()
    return last


# Of somebody who has number 1: the first connection of a test is another one's.
OWN = NUM_IDS + 1


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Submit((FreeContext(7),)), "FreeContext names id 7,"),
        (Submit((OpenRun(OWN), FreeContext(-1)), OWN), "FreeContext names id -1,"),
        (Submit((OpenRun(OWN), FreeContext(2 * NUM_IDS)), OWN), "FreeContext names id"),
        (Submit((), 7), "id 7 is not"),
        (Hello(), "once"),
    ],
    ids=["another's", "negative", "too-high", "run", "hello"],
)
def test_what_is_not_allowed_ends_the_connection(served: Served, message: ToEngine, reason: str) -> None:
    """With a reason; nothing of the message is carried out, and another client is served."""
    other = served.connect()
    with connected(served) as connection:
        connection.send(message)
        last = last_message(connection)

    assert isinstance(last, Refused)
    assert reason in last.message
    served.wait_until(lambda: served.server.num_connections == 1)
    other.check_integrity()
    assert other.stats().runs == 0


@pytest.mark.parametrize("first", [Hello(protocol=99), AskStats(1), Submit((OpenRun(1),), 1)], ids=str)
def test_who_does_not_begin_as_agreed_is_refused(served: Served, first: ToEngine) -> None:
    """Another version, or no beginning at all."""
    with closing(connect(served.path, FromEngine)) as connection:
        connection.send(first)
        assert isinstance(last_message(connection), Refused)
    assert served.engine.stats().runs == 0


@pytest.mark.parametrize(
    "data",
    [
        (MOST_BYTES + 1).to_bytes(4, "little") + b"x" * 1000,
        b"\xff\xff\xff\xff",
        b"\x04\0\0\0\xc1\xc1\xc1\xc1",
        b"\xff\x00\x00",
        b"\x00\x00\x00\x00",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["too-large", "huge", "malformed", "cut", "empty", "http"],
)
def test_a_bad_frame_ends_the_connection(served: Served, data: bytes) -> None:
    """Hung up on at once, before anything large has been kept; another client is served."""
    other = served.connect()
    with closing(socket.socket(socket.AF_UNIX)) as raw:
        raw.connect(str(served.path))
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert raw.recv(100) == b""
    served.wait_until(lambda: served.server.num_connections == 1)
    other.check_integrity()


def test_everything_is_answered(served: Served) -> None:
    """Counters, a ping, a check, each by the number of its question."""
    with connected(served) as connection:
        connection.send(AskStats(5))
        stats = connection.receive()
        connection.send(Ping(6))
        pong = connection.receive()
        connection.send(CheckIntegrity(7))
        checked = connection.receive()

    assert isinstance(stats, Stats)
    assert stats.stats.pages_total == 4096
    assert [stats.request_id, pong, checked] == [5, Pong(6), IntegrityChecked(7, None)]


def test_a_ping_is_answered_by_the_engine_itself(serve: Serve) -> None:
    """While the engine's thread is held up there is no answer, though counters are; and only some may wait."""
    engine = FakeEngine(["x" * 100])
    served = serve(engine)
    held, go_on = threading.Event(), threading.Event()
    other = served.connect()
    route = engine._listener
    assert route is not None

    def hold(events: list[Any]) -> None:
        held.set()
        go_on.wait(60)
        route(events)

    engine._listener = hold
    run_id = other.new_id()
    other.submit([OpenRun(run_id), Fence(other.new_id(), run_id)], run_id)
    assert held.wait(60)
    with connected(served) as connection, connected(served) as greedy:
        connection.send(Ping(1))
        connection.send(AskStats(2))
        assert isinstance(connection.receive(), Stats)
        for number in range(MOST_PINGS + 1):
            greedy.send(Ping(number))
        assert isinstance(last_message(greedy), Refused)
        go_on.set()
        assert connection.receive() == Pong(1)


def test_a_check_that_fails_says_what_is_wrong(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to the client as the AssertionError that it is."""
    served = serve(FakeEngine())
    client = served.connect()

    def fail() -> None:
        raise AssertionError("a page too many")

    with monkeypatch.context() as patch:
        patch.setattr(served.engine, "check_integrity", fail)
        with pytest.raises(AssertionError, match="a page too many"):
            client.check_integrity()
    client.check_integrity()


def test_who_does_not_read_is_hung_up_on(serve: Serve) -> None:
    """What waits is bounded; its runs are closed, and another client has all that is its own."""
    served = serve(FakeEngine(lambda prompt: "y" * 2000, context_len=10**6, num_pages=10**5))
    served.server._listener._most_unsent = 50_000
    with connected(served) as connection:
        other = served.connect()
        heard = Recorder(other)
        commands: list[Command] = [OpenRun(1), CreateContext(2, 1), AppendTokens(2, (97,))]
        for number in range(10, 200, 2):
            commands += [CreateContext(number, 1), AppendTokens(number, (97,))]
            commands.append(Generate(number + 1, number, Sampling(seed=0)))
        connection.send(Submit(tuple(commands), 1))
        served.wait_until(lambda: served.server.num_connections == 1)
        served.wait_until(lambda: nothing_held(served.engine.stats()))
        run_id, last_id = other.new_id(), other.new_id()
        other.submit([OpenRun(run_id), Fence(last_id, run_id), CloseRun(run_id)], run_id)
        heard.wait_for(Done)


def test_prefixes_go_with_who_has_published_them(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the connection is lost, they are unpublished."""
    submitted: list[Command] = []
    submit = served.engine.submit
    monkeypatch.setattr(
        served.engine, "submit", lambda commands, run_id=None: (submitted.extend(commands), submit(commands, run_id))
    )
    with connected(served) as connection:
        connection.send(Submit((PublishPrefix(1, (1, 2, 3)), PublishPrefix(2, (1, 2, 3)))))
        assert isinstance(connection.receive(), Events)
    served.wait_until(lambda: served.server.num_connections == 0)

    assert sorted(command.prefix_id for command in submitted if type(command).__name__ == "UnpublishPrefix") == [1, 2]


def test_a_step_with_more_than_a_message_holds_comes_in_parts() -> None:
    """All of it, in order; one event that no message holds ends the connection, whoever waits for it hears."""
    left, right = socket.socketpair(socket.AF_UNIX)
    engine = FakeEngine()
    here: Connection[ToEngine] = Connection(left, Frames(ToEngine, 1000))
    with closing(engine), closing(Connection(right, Frames[FromEngine](FromEngine))) as there, closing(here):
        pinger = Pinger(engine.submit, range(10, 20))
        session = Session(here, engine, pinger, LostRuns(), Welcome((), (), 0), Grants(None))
        session.deliver([Done(number) for number in range(500)])
        ids: list[int] = []
        while len(ids) < 500:
            message = there.receive()
            assert isinstance(message, Events)
            ids += [event.operation_id for event in message.events if isinstance(event, Done)]
        session.deliver([Chunk(1, (1,), "x" * 1000)])
        with pytest.raises(WireError, match="closed"):
            there.receive()

    assert ids == list(range(500))


NO_MESSAGE = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=200).map(lambda body: len(body).to_bytes(4, "little") + body),
    st.dictionaries(
        st.sampled_from(["type", "commands", "run_id", "request_id"]),
        st.integers(-(1 << 63), (1 << 64) - 1) | st.text(),
    ).map(
        lambda body: bytes(Frames[Any](Any).pack(body))  # type: ignore[arg-type]
    ),
    st.sampled_from([Hello(), AskStats(1), Ping(2), CheckIntegrity(3), Submit((FreeContext(-1),)), Submit(())]).map(
        lambda message: bytes(Frames[Any](Any).pack(message))
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(NO_MESSAGE, max_size=6), st.booleans())
def test_whatever_comes_the_engine_goes_on(
    served: Served, caplog: pytest.LogCaptureFixture, data: list[bytes], is_welcome: bool
) -> None:
    """Any bytes before and after a proper beginning: no exception, no thread and no connection that stays."""
    with closing(socket.socket(socket.AF_UNIX)) as raw, contextlib.suppress(OSError):
        raw.connect(str(served.path))
        if is_welcome:
            raw.sendall(Frames[Any](Any).pack(Hello()))
        for part in data:
            raw.sendall(part)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass
    served.wait_until(lambda: served.server.num_connections == 0)
    with closing(connect_engine(served.path)) as client:
        client.check_integrity()

    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert sum("connection" in thread.name for thread in threading.enumerate()) <= 1


FEW_IDS = st.integers(0, 12)


def _value(field: Any) -> st.SearchStrategy[Any]:
    """Something for a field of a command: ids are few, so that they meet."""
    if field.name.endswith("_id"):
        return FEW_IDS
    if field.name == "part_ids":
        return st.lists(FEW_IDS, max_size=3).map(tuple)
    if field.name == "token_ids":
        return st.lists(st.integers(0, 600), max_size=40).map(tuple)
    return st.from_type(field.type)


COMMANDS = st.one_of(
    [
        st.builds(kind, **{field.name: _value(field) for field in msgspec.structs.fields(kind)})
        for kind in get_args(Command)
    ]
)


def moved(command: Command, first_id: int) -> Command:
    """The command with ids from `first_id` on."""
    fields = msgspec.structs.asdict(command)
    for name, value in fields.items():
        if name == "part_ids":
            fields[name] = tuple(each + first_id for each in value)
        elif name.endswith("_id") and value is not None:
            fields[name] = value + first_id
    return type(command)(**fields)


@pytest.fixture(scope="module")
def tiny() -> Iterator[tuple[EngineClient, Path]]:
    """A small engine with a model, served."""
    engine = compose.start_engine("tiny", dtype="float32", kv_pages=16, threads=1)
    with SocketFolder() as folder:
        path = folder.socket_path("tiny")
        server = EngineServer(engine, path, {"tiny": None}, lambda error: None)
        yield engine, path
        server.close()
    engine.close()


@settings(suppress_health_check=list(HealthCheck), max_examples=150)
@given(st.lists(st.tuples(st.lists(COMMANDS, max_size=6), st.none() | FEW_IDS), max_size=6))
def test_whatever_is_asked_the_engine_goes_on(
    tiny: tuple[EngineClient, Path],
    caplog: pytest.LogCaptureFixture,
    batches: list[tuple[list[Command], int | None]],
) -> None:
    """Any commands in any order, of one's own ids: they are carried out or refused, and go with the connection."""
    engine, path = tiny
    with closing(connect_engine(path)) as client:
        first_id = client.new_id() - 1
        for commands, run_id in [([OpenRun(1), CreateContext(2, 1), AppendTokens(2, (5, 6, 7))], None), *batches]:
            client.submit(
                [moved(command, first_id) for command in commands], None if run_id is None else run_id + first_id
            )
        client.check_integrity()
    for _ in range(10_000):
        if nothing_held(engine.stats()):
            break
        time.sleep(0.001)
    engine.check_integrity()

    assert nothing_held(engine.stats())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
