"""The run itself."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import RunLimit, run


def test_a_run_knows_itself(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Id, inferlet, tenant, seed; and its limits by name."""
    monkeypatch.setattr(
        stub.runs, "limits", lambda: [stub.runs.Limit("max_wall_ms", 10, 8), stub.runs.Limit("x", 1, None)]
    )

    assert (run.info().inferlet, run.info().seed) == ("stub", 1)
    assert run.limits() == {"max_wall_ms": RunLimit("max_wall_ms", 10, 8), "x": RunLimit("x", 1, None)}
    assert [limit.left for limit in run.limits().values()] == [0, None]
