"""The engine over a socket: what holds of the engine in process holds of it, and what is its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import tartlet
from tartlet import compose, models, sync
from tartlet.errors import EngineStoppedError
from tartlet.server.engine import socket_client
from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.settings import EngineSettings
from tartlet.server.engine.socket_client import connect_engine
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet.testing import FakeEngine
from tartlet_engine.api import (
    AppendTokens,
    CompileConstraint,
    ConstraintKind,
    CreateContext,
    Done,
    EngineClient,
    EngineStopped,
    ErrorCode,
    Event,
    Failed,
    Fence,
    OpenRun,
)
from tests.engine.test_engine import (
    test_a_failing_listener_does_not_stop_the_engine as test_a_failing_listener_does_not_end_the_connection,  # noqa: F401
)
from tests.engine.test_engine import (  # noqa: F401
    test_a_fence_comes_after_what_was_submitted_before,
    test_all_of_a_step_comes_in_one_call,
    test_an_engine_has_one_listener,
    test_an_idle_engine_does_nothing,
    test_cancel_and_close_run,
    test_models_and_text,
    test_no_id_is_given_twice,
)
from tests.host.server.engine.conftest import Recorder, Serve, Served, StartEngine

# What a worker's process loads to use an engine with a model, and to run a program on it.
WORKER = """
import sys
from pathlib import Path
from tartlet import sync
from tartlet.server.engine.socket_client import connect_engine

client = connect_engine(Path(sys.argv[1]))
text = client.text("tiny")
assert text.decode(text.encode("fork")) == "fork"
assert text.chat_message([], "user", "hello")
with sync.Host(engine=client, spares=0) as host:
    assert host.models[0].name == "tiny"
client.close()
print(sorted({"torch", "transformers", "numpy", "tartlet_engine.engine"} & set(sys.modules)))
"""


@pytest.fixture
def client(socket_folder: SocketFolder) -> Iterator[EngineClient]:
    """An engine with the tiny model that has just been started, over a socket. Its books must balance at the end."""
    engine = compose.start_engine("tiny", dtype="float32", kv_pages=128, threads=1)
    path = socket_folder.socket_path("tiny")
    server = EngineServer(engine, path, {"tiny": str(models.pull("tiny"))}, lambda error: None)
    client = connect_engine(path)
    yield client
    client.check_integrity()
    client.close()
    server.close()
    engine.check_integrity()
    stats = engine.stats()
    assert (stats.runs, stats.contexts, stats.pages_held) == (0, 0, 0)
    engine.close()


def test_a_worker_loads_no_torch(start_process: StartEngine) -> None:
    """It has tokenizer and chat template in its process, and runs programs, without anything of the model's side."""
    process = start_process(EngineSettings(model="tiny", kv_pages=128, threads=1))
    process.connect()
    worker = [sys.executable, "-c", WORKER, str(process.path)]
    done = subprocess.run(worker, capture_output=True, text=True, check=False)

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_nobody_there_is_a_typed_error(socket_folder: SocketFolder) -> None:
    """The engine is not there yet, or no more."""
    with pytest.raises(EngineStoppedError, match="there is no engine at"):
        connect_engine(socket_folder.socket_path("nobody"))


def test_events_come_on_a_thread_of_the_clients(served: Served) -> None:
    """One for all of them; not the one that submits."""
    client = served.connect()
    threads: set[str] = set()
    done = threading.Event()

    def listener(events: list[Event]) -> None:
        threads.add(threading.current_thread().name)
        done.set()

    client.listen(listener)
    run_id = client.new_id()
    client.submit([OpenRun(run_id), Fence(client.new_id(), run_id)], run_id)
    assert done.wait(60)

    assert threads == {"tartlet-engine-socket"}


def test_who_begins_to_listen_too_late_hears_of_the_end(served: Served) -> None:
    """The engine stopped before anybody listened."""
    client = served.connect()
    served.engine.crash("too early")
    served.wait_until(lambda: served.stops)
    with pytest.raises(EngineStoppedError, match="too early"):
        client.check_integrity()

    assert Recorder(client).wait_for(EngineStopped).error.message == "too early"


def test_after_its_end_it_does_nothing(served: Served) -> None:
    """Commands are dropped, counters are the last ones, a check cannot be made; closing twice is allowed."""
    client = served.connect()
    heard = Recorder(client)
    assert client.stats().pages_total == 4096
    client.close()
    client.close()
    client.submit([OpenRun(client.new_id())])

    assert heard.wait_for(EngineStopped).error.code == ErrorCode.UNAVAILABLE
    assert client.stats().pages_total == 4096
    with pytest.raises(EngineStoppedError, match="lost"):
        client.check_integrity()


def test_who_never_had_counters_has_none_after_the_end(served: Served) -> None:
    """That is a typed error."""
    client = served.connect()
    client.close()

    with pytest.raises(EngineStoppedError, match="lost"):
        client.stats()


def test_counters_do_not_wait_for_a_process_that_does_not_answer(
    start_process: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held up; what was known last is given."""
    process = start_process()
    client = process.connect()
    process.hold()
    monkeypatch.setattr(socket_client, "STATS_SECONDS", 0.05)
    with pytest.raises(EngineStoppedError, match="does not answer"):
        client.stats()
    process.go_on()
    monkeypatch.setattr(socket_client, "STATS_SECONDS", 60)
    known = client.stats()
    process.hold()
    monkeypatch.setattr(socket_client, "STATS_SECONDS", 0.05)

    assert client.stats() == known
    process.go_on()


def test_submitting_does_not_wait_for_a_process_that_does_not_read(start_process: StartEngine) -> None:
    """It is held up; all that was submitted meanwhile is done afterwards, in order."""
    process = start_process(context_len=10**6, num_pages=10**5)
    client = process.connect()
    heard = Recorder(client)
    process.hold()
    run_id, context_id, last_id = client.new_id(), client.new_id(), client.new_id()
    client.submit([OpenRun(run_id), CreateContext(context_id, run_id)], run_id)
    for _ in range(100):
        client.submit([AppendTokens(context_id, tuple(range(200)) * 40)], run_id)
    client.submit([Fence(last_id, run_id)], run_id)
    process.go_on()

    assert heard.wait_for(Done).operation_id == last_id


def test_a_command_that_cannot_be_sent_fails_alone(served: Served) -> None:
    """Text that is no Unicode, or too long for a message; what was submitted with it is carried out."""
    client = served.connect()
    heard = Recorder(client)
    run_id, constraint_id, large_id, fence_id = (client.new_id() for _ in range(4))
    client.submit(
        [
            OpenRun(run_id),
            CompileConstraint(constraint_id, run_id, ConstraintKind.REGEX, "\ud800"),
            CompileConstraint(large_id, run_id, ConstraintKind.REGEX, "x" * (65 << 20)),
            Fence(fence_id, run_id),
        ],
        run_id,
    )

    assert heard.wait_for(Done).operation_id == fence_id
    for failed_id in (constraint_id, large_id):
        failed = heard.wait_for(Failed, lambda event, failed_id=failed_id: event.failed_id == failed_id)
        assert failed.error.code == ErrorCode.INVALID_ARGUMENT


INFERLET = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(text: str) -> str:
    context = Model.default().context()
    context.fill(text)
    return (await context.generate()).text
"""


@pytest.mark.runner
def test_a_host_whose_engine_dies_ends_its_runs(start_process: StartEngine) -> None:
    """They end with the typed error; a new host on a new engine runs again in the same process."""
    process = start_process(replies=("y" * 100_000,), token_delay_s=0.001, context_len=200_000)
    with sync.Host(engine=process.connect(), spares=0) as host:
        run = host.start(INFERLET, {"text": "x"})
        while host.stats().engine.generated_tokens == 0:
            pass
        process.process.kill()
        with pytest.raises(tartlet.EngineStoppedError, match="lost"):
            run.result()
    again = start_process()
    with sync.Host(engine=again.connect(), spares=0) as host:
        assert host.run(INFERLET, {"text": "again"}) == "again"


@pytest.mark.runner
def test_two_hosts_share_an_engine(serve: Serve) -> None:
    """Each a client of its own; what each runs is what it would be alone."""
    served = serve(FakeEngine())
    with (
        sync.Host(engine=served.connect(), spares=0) as one,
        sync.Host(engine=served.connect(), spares=0) as two,
    ):
        runs = [host.start(INFERLET, {"text": f"text {number}"}) for number in range(5) for host in (one, two)]
        assert [run.result() for run in runs] == [f"text {number}" for number in range(5) for _ in (one, two)]


def test_a_listener_that_stops_listening_hears_no_more(served: Served) -> None:
    """And another one may begin."""
    client = served.connect()
    first = Recorder(client)
    client.listen(None)
    second = Recorder(client)
    run_id = client.new_id()
    client.submit([OpenRun(run_id), Fence(client.new_id(), run_id)], run_id)
    second.wait_for(Done)

    assert first.events == []


def test_it_is_no_use_to_wait_on_the_reading_thread(served: Served) -> None:
    """A listener that asks for counters gets those known last, and holds nothing up."""
    client = served.connect()
    known = client.stats()
    heard = []
    done = threading.Event()

    def listener(events: list[Event]) -> None:
        heard.append(client.stats())
        done.set()

    client.listen(listener)
    run_id = client.new_id()
    client.submit([OpenRun(run_id), Fence(client.new_id(), run_id)], run_id)
    assert done.wait(60)

    assert heard == [known]
