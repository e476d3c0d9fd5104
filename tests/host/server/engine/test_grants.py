"""What a worker that has been taken over may do at the engine's socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tartlet.server.engine.engine_server import EngineServer
from tartlet.server.engine.grants import KEY_BYTES, Grants, make_grant, new_key
from tartlet.server.engine.socket_client import SocketClient, connect_engine
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet.testing import FakeEngine
from tartlet_engine.api import CloseRun, Command, CreateContext, EngineStopped, OpenRun, PublishPrefix
from tests.host.server.engine.conftest import Recorder

KEY = b"k" * KEY_BYTES


@pytest.fixture
def connect() -> Iterator[Callable[[], SocketClient]]:
    """Connects to an engine that asks for grants. At the end nothing is left in it."""
    with SocketFolder() as folder, closing(FakeEngine()) as engine:
        path = folder.socket_path("engine")
        with closing(EngineServer(engine, path, {"fake": None}, lambda error: None, KEY)):
            yield lambda: connect_engine(path)
        engine.check_integrity()
        assert engine.stats().runs == 0


@pytest.mark.parametrize(
    ("tenant", "weight", "key"),
    [("globex", 1.0, KEY), ("acme", 2.0, KEY), ("acme", 1.0, b"x" * KEY_BYTES), ("acme", 1.0, b"")],
)
def test_a_grant_is_for_one_tenant_with_one_weight(tenant: str, weight: float, key: bytes) -> None:
    """And was made by who has the key."""
    grants = Grants(KEY)
    open_run = OpenRun(1, "acme", weight=1.0)
    grants.show("acme", 1.0, make_grant(key, tenant, weight))
    assert grants.refusal(open_run) is not None
    grants.show("acme", 1.0, make_grant(KEY, "acme", 1.0))

    assert grants.refusal(open_run) is None
    assert grants.refusal(OpenRun(1, "acme", weight=2.0)) is not None
    assert grants.refusal(OpenRun(1, "globex", weight=1.0)) is not None


def test_who_owns_the_engine_needs_none() -> None:
    """As a host whose engine is in its own process."""
    assert Grants(None).refusal(OpenRun(1, "acme")) is None
    assert len({new_key() for _ in range(10)}) == 10


def test_a_run_with_a_grant(connect: Callable[[], SocketClient]) -> None:
    """It is opened, and so is the next; the grant is told once."""
    with closing(connect()) as client:
        for run_id in (client.new_id(), client.new_id()):
            client.show_grant("acme", 1.0, make_grant(KEY, "acme", 1.0))
            client.submit([OpenRun(run_id, "acme"), CreateContext(client.new_id(), run_id)], run_id)
            client.check_integrity()
            client.submit([CloseRun(run_id)], run_id)
        client.check_integrity()
        assert len(client._shown) == 1


@pytest.mark.parametrize("command", [lambda new: OpenRun(new, "globex"), lambda new: PublishPrefix(new, (1, 2))])
def test_what_a_worker_has_no_grant_for(connect: Callable[[], SocketClient], command: Callable[[int], Command]) -> None:
    """Its connection is closed, and another's grants are of no use to it; nothing of the batch is carried out."""
    with closing(connect()) as other, closing(connect()) as client:
        other.show_grant("globex", 1.0, make_grant(KEY, "globex", 1.0))
        other.check_integrity()
        client.show_grant("acme", 1.0, make_grant(KEY, "acme", 1.0))
        recorder = Recorder(client)
        client.submit([OpenRun(client.new_id(), "acme"), command(client.new_id())])
        stopped = recorder.wait_for(EngineStopped)

        assert "has refused" in stopped.error.message
        other.check_integrity()
        assert other.stats().runs == 0
