"""How generations with controllers are driven; what they do is in tests/host/bindings/test_controllers.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.controller_fixture import controller
from tartlet import sync
from tartlet.runtime.controller import ControllerState

pytestmark = pytest.mark.runner


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host with the tiny model."""
    with sync.Host("tiny", threads=1, kv_pages=256) as host:
        yield host


@pytest.mark.parametrize("branches", [1, 10])
def test_all_sequences_are_in_one_call_a_step(host: sync.Host, monkeypatch: pytest.MonkeyPatch, branches: int) -> None:
    """Twenty tokens of ten sequences are some twenty calls, not two hundred."""
    sizes: list[int] = []
    call = ControllerState.call

    def counting(self: ControllerState, export: str, *args: Any, then: Any) -> None:
        if export == "step":
            sizes.append(len(args[0]))
        call(self, export, *args, then=then)

    monkeypatch.setattr(ControllerState, "call", counting)
    result = host.control(controller(), "hello there", branches, max_tokens=20)

    assert [each["tokens"] for each in result["sequences"]] == [20] * branches
    assert sum(sizes) == 1 + 20 * branches  # first nothing has happened; then each token is told once
    assert len(sizes) <= 30
    assert max(sizes) == branches


def test_a_run_that_ends_takes_its_controllers_along(host: sync.Host) -> None:
    """Whatever the controller is doing when its run is cancelled: nothing is left, and the pages are free."""
    for step in ("(nop)", "(loop $l (br $l))"):
        run = host.start_control(controller(step), "hello there", 10)
        run.cancel()
        with pytest.raises(Exception, match="cancelled"):
            run.result()

    assert host.control(controller(), "hello there", 1, max_tokens=2)["sequences"][0]["tokens"] == 2
    deadline = time.monotonic() + 5
    while host.stats().engine.pages_held and time.monotonic() < deadline:
        time.sleep(0.001)  # the engine hears of the end of a run after its caller
    stats = host.stats()
    assert (stats.runs.live, stats.engine.pages_held) == (0, 0)
    assert stats.runs.stores <= stats.runs.spares_parked + 1


def test_the_same_seed_gives_the_same_texts(host: sync.Host) -> None:
    """Forks draw seeds of their own from the run's."""
    options: dict[str, Any] = {"max_tokens": 8, "temperature": 1.5, "seed": 3}
    first = host.control(controller(), "hello there", 3, **options)

    assert host.control(controller(), "hello there", 3, **options) == first
    assert len({each["text"] for each in first["sequences"]}) == 3
