from __future__ import annotations

from tartlet.server.engine.pinger import Pinger
from tartlet_engine.api import Command, Done, Fence


def test_each_ping_is_answered_once() -> None:
    """By its own id, when the engine comes to it; an answer to none does nothing."""
    sent: list[Command] = []
    answered: list[str] = []
    pinger = Pinger(sent.extend, range(1000, 2000))

    pinger.ping(lambda: answered.append("a"))
    pinger.ping(lambda: answered.append("b"))
    ids = [command.operation_id for command in sent if isinstance(command, Fence)]
    for operation_id in (ids[1], ids[1], 1999, ids[0]):
        pinger.handle(operation_id, Done(operation_id))

    assert answered == ["b", "a"]
    assert all(command.run_id not in ids and command.run_id in range(1000, 2000) for command in sent)  # type: ignore[union-attr]
