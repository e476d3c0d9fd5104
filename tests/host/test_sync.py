import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tartlet
from tartlet import sync
from tartlet.testing import FakeEngine


def test_a_run_from_start_to_result(fake: Any, component: Any) -> None:
    """Load, start, iterate, result: as with the asynchronous host, without `await`."""
    program = fake.host.load(component("(call $print (i32.const 64) (i32.const 4))", uses=("log",)))

    run = fake.host.start(program, {"n": 1}, seed=5)
    events = list(run)

    assert run.result() is None
    assert events[0] == tartlet.Output("null")
    assert events[-1] == run.usage
    assert (run.seed, run.has_ended, run.limits) == (5, True, tartlet.Limits())


def test_from_several_threads(fake: Any, component: Any) -> None:
    """One host serves many threads at once."""
    program = fake.host.load(component("", data="7"))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: fake.host.run(program), range(50))) == [7] * 50


def test_errors_arrive_as_they_are(fake: Any, component: Any) -> None:
    """A run's error is raised in the caller's thread."""
    with pytest.raises(tartlet.GuestTrapError):
        fake.host.run(component("unreachable"))


def test_a_host_that_is_not_open() -> None:
    """It says how to open it."""
    with pytest.raises(tartlet.ConfigError, match="with Host"):
        sync.Host().load("x.wasm")


def test_closing_leaves_no_thread() -> None:
    """The loop's thread ends with the host, and so does that of a host that could not be opened."""
    engine = FakeEngine()
    with sync.Host(engine=engine):
        pass  # what a process keeps for good is there from now on
    before = threading.active_count()

    with sync.Host(engine=engine) as host, pytest.raises(tartlet.ConfigError, match="open already"):
        host.__enter__()

    assert threading.active_count() == before
    engine.close()


def test_it_is_the_twin_of_the_asynchronous_host() -> None:
    """Every public method and property of `Host` and `Run` is there, with the same parameters."""
    for twin, original in ((sync.Host, tartlet.Host), (sync.Run, tartlet.Run)):
        for name, member in vars(original).items():
            if name.startswith("_") or name == "next_event":
                continue
            other = inspect.getattr_static(twin, name)
            assert type(other) is type(member), name
            if inspect.isfunction(member):
                assert inspect.signature(other).parameters == inspect.signature(member).parameters, name
    assert inspect.signature(sync.Host).parameters == inspect.signature(tartlet.Host).parameters
