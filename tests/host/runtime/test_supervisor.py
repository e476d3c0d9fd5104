import time
from typing import Any

import pytest

import tartlet
from tartlet import sync
from tartlet.testing import FakeEngine

HELLO = "from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    return 'hello'\n"
WAIT = "(call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i64.const 3600000000000) (i32.const 16))"


def test_the_engines_end_ends_every_run(component: Any) -> None:
    """When the engine dies, waiting runs end with its words, and new ones at once."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        program = host.load(component(WAIT, uses=("events",)))
        runs = [host.start(program) for _ in range(5)]

        engine.crash("out of luck")

        for run in [*runs, host.start(program)]:
            with pytest.raises(tartlet.EngineStoppedError, match="out of luck"):
                run.result()
        assert host.stats().runs.live == 0
    engine.close()


def test_closing_the_host_ends_every_run(component: Any) -> None:
    """Runs that still go on when the host closes are cancelled, and free what they hold in the engine."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        waiting = host.load(component(WAIT, uses=("events",)))
        spinning = host.load(component("(loop $l (br $l))"))
        runs = [host.start(program) for program in (waiting, spinning) * 5]

    assert all(run.has_ended for run in runs)
    engine.check_integrity()
    assert engine.stats().runs == 0
    engine.close()


@pytest.mark.runner
def test_loading_while_the_host_closes() -> None:
    """A program that is being loaded when the host closes is given up with an error, not waited for without an end."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        host.load(HELLO)
        loader = host._host._loader
        assert loader is not None

    with pytest.raises(tartlet.BuildError, match="the host is closing"):
        loader.load(f"{HELLO}# {time.monotonic_ns()}\n", None)
    engine.close()


def test_counts(fake: Any, component: Any) -> None:
    """Live and started runs are counted."""
    program = fake.host.load(component(WAIT, uses=("events",)))
    before = fake.host.stats().runs
    run = fake.host.start(program)
    while fake.host.stats().runs.live == before.live:
        time.sleep(0.001)

    after = fake.host.stats().runs
    run.cancel()

    assert (after.live, after.started) == (before.live + 1, before.started + 1)
    with pytest.raises(tartlet.RunCancelledError):
        run.result()
