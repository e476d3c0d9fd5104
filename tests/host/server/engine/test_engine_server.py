from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import Any

import pytest

from tartlet.errors import EngineStoppedError, WireError
from tartlet.server.engine import engine_server
from tartlet.server.engine.messages import NUM_IDS, FromEngine, Hello, Welcome
from tartlet.server.engine.socket_client import SocketClient
from tartlet.server.wire.connections import connect
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet.testing import FakeEngine
from tartlet_engine.api import (
    AppendTokens,
    Chunk,
    CloseRun,
    CreateContext,
    EngineStopped,
    Finished,
    Generate,
    OpenRun,
    Sampling,
    Stop,
)
from tests.host.server.engine.conftest import Recorder, Serve, Served, StartEngine


def generate(client: SocketClient, text: str, **stop: Any) -> int:
    """Begin a generation in a run of its own; give its id."""
    run_id, context_id, generation_id = client.new_id(), client.new_id(), client.new_id()
    commands = [OpenRun(run_id), CreateContext(context_id, run_id), AppendTokens(context_id, tuple(text.encode()))]
    client.submit([*commands, Generate(generation_id, context_id, Sampling(seed=0), Stop(**stop))], run_id)
    return generation_id


def test_each_client_hears_of_its_own(served: Served, recorder: type[Recorder]) -> None:
    """Two at once, whose ids count alike: each gets all of its generation and nothing of the other's."""
    one, two = served.connect(), served.connect()
    heard_one, heard_two = recorder(one), recorder(two)
    first, second = generate(one, "first text"), generate(two, "second text")
    for heard, generation_id in ((heard_one, first), (heard_two, second)):
        heard.wait_for(Finished)
        assert {event.generation_id for event in heard.events} == {generation_id}

    assert first != second
    assert first % NUM_IDS == second % NUM_IDS
    texts = [
        "".join(event.text for event in heard.events if isinstance(event, Chunk)) for heard in (heard_one, heard_two)
    ]
    assert texts == ["first text", "second text"]


def test_what_a_lost_client_held_is_freed(serve: Serve, recorder: type[Recorder]) -> None:
    """It goes in the middle of generations without an end; another's go on."""
    served = serve(FakeEngine(lambda prompt: "y" * 10**7, token_delay_s=0.001, context_len=10**6, num_pages=10**5))
    staying, leaving = served.connect(), served.connect()
    heard, heard_leaving = recorder(staying), recorder(leaving)
    generation_id = generate(staying, "stays")
    for _ in range(20):
        generate(leaving, "goes")
    heard_leaving.wait_for(Chunk)
    served.wait_until(lambda: served.engine.stats().runs == 21)

    leaving.close()
    served.wait_until(lambda: served.engine.stats().runs == 1)
    served.engine.check_integrity()
    assert served.engine.stats().contexts == 1
    num_chunks = len(heard.events)
    heard.wait_for(Chunk, number=num_chunks + 3)
    assert {event.generation_id for event in heard.events} == {generation_id}
    assert served.server.num_connections == 1


def test_runs_that_were_closed_are_not_closed_again(served: Served, recorder: type[Recorder]) -> None:
    """A client that has tidied up leaves nothing to do."""
    client = served.connect()
    heard = recorder(client)
    run_id = client.new_id()
    client.submit([OpenRun(run_id)], run_id)
    client.submit([CloseRun(run_id)], run_id)
    generate(client, "x")
    heard.wait_for(Finished)
    client.close()

    served.wait_until(lambda: served.engine.stats().runs == 0)


def test_when_the_engine_stops_everybody_is_told(serve: Serve, recorder: type[Recorder]) -> None:
    """All clients, with the engine's own words, and whoever serves it."""
    engine = FakeEngine()
    served = serve(engine)
    recorders = [recorder(served.connect()) for _ in range(3)]
    engine.crash("out of order")

    for heard in recorders:
        assert heard.wait_for(EngineStopped).error.message == "out of order"
    served.wait_until(lambda: served.stops)
    assert [error.message for error in served.stops] == ["out of order"]


def test_too_many_connections_are_turned_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reason; when one has gone, another may come."""
    monkeypatch.setattr(engine_server, "MOST_CONNECTIONS", 2)
    first, _ = served.connect(), served.connect()
    with pytest.raises(EngineStoppedError, match="2 connections, and takes no more"):
        served.connect()

    first.close()
    served.wait_until(lambda: served.server.num_connections == 1)
    served.connect()


def test_numbers_are_not_given_twice(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine hears no id of somebody who has gone; when there are no numbers left it takes nobody."""
    monkeypatch.setattr(engine_server, "MOST_NUMBERS", 4)
    firsts = []
    for _ in range(3):
        client = served.connect()
        firsts.append(client.new_id())
        client.close()

    assert firsts == [1, NUM_IDS + 1, 2 * NUM_IDS + 1]
    with pytest.raises(EngineStoppedError, match="takes no more"):
        served.connect()


def test_an_engine_that_somebody_listens_to_is_not_served(served: Served, socket_folder: SocketFolder) -> None:
    """It is refused, and nothing stays behind."""
    with pytest.raises(RuntimeError, match="already"):
        engine_server.EngineServer(
            served.engine, socket_folder.socket_path("other"), {"fake": None}, lambda error: None
        )
    with pytest.raises(WireError):
        connect(socket_folder.socket_path("other"), FromEngine)


def test_closing_hangs_up(serve: Serve, recorder: type[Recorder]) -> None:
    """Clients hear that the engine is gone for them, those that have said nothing yet included."""
    served = serve(FakeEngine())
    heard = recorder(served.connect())
    with closing(connect(served.path, FromEngine)) as silent, closing(connect(served.path, FromEngine)) as greeted:
        greeted.send(Hello())
        assert isinstance(greeted.receive(), Welcome)
        served.wait_until(lambda: served.server.num_connections == 3)
        served.server.close()
        served.server.close()
        for connection in (silent, greeted):
            with pytest.raises(WireError, match="closed"):
                connection.receive()
    assert "lost" in heard.wait_for(EngineStopped).error.message
    assert served.server.num_connections == 0


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_when_its_process_ends_everybody_is_told(
    start_process: StartEngine, recorder: type[Recorder], kill: int
) -> None:
    """Killed or asked to end, in the middle of generations."""
    process = start_process(token_delay_s=0.001, replies=("y" * 10_000,) * 4, context_len=20_000)
    recorders = []
    for _ in range(2):
        client = process.connect()
        recorders.append(recorder(client))
        generate(client, "x")
        generate(client, "z")
        recorders[-1].wait_for(Chunk)
    os.kill(process.process.pid, kill)

    for heard in recorders:
        heard.wait_for(EngineStopped)
        assert sum(isinstance(event, EngineStopped) for event in heard.events) == 1
    assert process.process.wait() == (-signal.SIGKILL if kill == signal.SIGKILL else 0)
