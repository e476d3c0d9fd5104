from __future__ import annotations

import logging

import pytest

from tartlet.server.logged_progress import LoggedProgress


def test_each_task_has_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    """When it begins, and how long it took; one that is done at once has one."""
    progress = LoggedProgress()
    with caplog.at_level(logging.INFO, "tartlet"):
        for done in (0.0, 1.0, 2.0):
            progress("loading", done, 2.0)
        progress("nothing", 1.0, 1.0)

    lines = [(record.getMessage(), record.task) for record in caplog.records]  # type: ignore[attr-defined]
    assert lines == [("begins", "loading"), ("done", "loading"), ("done", "nothing")]
    assert caplog.records[1].seconds >= 0  # type: ignore[attr-defined]
