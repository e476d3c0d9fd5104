from __future__ import annotations

import pytest

from tartlet.server.front.processes.child_log import ChildLog


async def test_lines_come_whole_with_the_child_s_name(caplog: pytest.LogCaptureFixture) -> None:
    """However they are cut on their way; the last may have no end."""
    log = ChildLog("worker 1")
    for part in (b"on", b"e\ntwo\nth", b"ree"):
        log.data_received(part)
    assert caplog.messages == ["worker 1: one", "worker 1: two"]

    log.connection_lost(None)
    await log.ended()
    assert caplog.messages[-1] == "worker 1: three"
    assert log.last_lines == "one\ntwo\nthree"


async def test_children_tell_levels(caplog: pytest.LogCaptureFixture) -> None:
    """By what a line begins with, which is not told twice."""
    ChildLog("engine").data_received(b"ERROR engine: it fell\nINFORMAL\n")

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "engine: engine: it fell"),
        ("WARNING", "engine: INFORMAL"),
    ]


async def test_a_line_can_neither_be_endless_nor_play_another(caplog: pytest.LogCaptureFixture) -> None:
    """It is cut, and control characters are shown."""
    log = ChildLog("worker 1")
    for _ in range(100):
        log.data_received(b"x" * 100_000)
    log.data_received(b"\n\x1b[2J\rERROR \xff\n")

    assert len(caplog.messages[0]) == len("worker 1: ") + 1_000
    assert caplog.messages[1] == "worker 1: \\x1b[2J\\x0dERROR \ufffd"


async def test_a_flood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    """So many lines in ten seconds are logged, then again as many."""
    now = [0.0]
    log = ChildLog("worker 1", lambda: now[0])
    log.data_received(b"line\n" * 1_000)
    assert len(caplog.messages) == 200

    now[0] = 10.0
    log.data_received(b"line\n")
    assert caplog.messages[200:] == ["worker 1: 800 more lines were left out", "worker 1: line"]


async def test_how_far_a_child_is_goes_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    """What it had not done when it ended is over, too. Of a child that is not trusted it is a line like any other."""
    steps: list[object] = []
    log = ChildLog("engine", progress=lambda *step: steps.append(step))
    log.data_received(b'PROGRESS {"task": "loading", "done": 1, "total": 2}\nINFO x\n')
    log.data_received(b'PROGRESS {"task": "packing", "done": 2, "total": 2}\n')
    assert steps == [("loading", 1.0, 2.0), ("packing", 2.0, 2.0)]
    assert len(caplog.records) <= 1
    log.connection_lost(None)
    assert steps[2:] == [("loading", 1.0, 1.0)]

    caplog.clear()
    ChildLog("worker 1").data_received(b'PROGRESS {"task": "loading", "done": 1, "total": 2}\n')
    assert len(caplog.records) == 1
