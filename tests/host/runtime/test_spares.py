import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tartlet
from tartlet import sync
from tartlet.languages.node import node_tool
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner

HELLO = "from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    return 'hello'\n"


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    engine = FakeEngine()
    yield engine
    engine.check_integrity()
    engine.close()


def wait_for_spares(host: sync.Host, number: int) -> None:
    """Waits until that many spares are parked."""
    deadline = time.monotonic() + 10
    while host.stats().runs.spares_parked != number:
        assert time.monotonic() < deadline, host.stats()
        time.sleep(0.001)


def test_spares_are_kept_and_refilled(engine: FakeEngine) -> None:
    """Once source is loaded there are as many as asked for, and what was taken comes again."""
    with sync.Host(engine=engine, spares=3) as host:
        program = host.load(HELLO)
        wait_for_spares(host, 3)

        assert [host.run(program) for _ in range(3)] == ["hello"] * 3

        wait_for_spares(host, 3)
        stats = host.stats().runs
        assert (stats.spares_taken + stats.spares_missed, stats.started) == (3, 3)
        assert stats.spares_taken >= 1


def test_without_spares_runs_start_on_demand(engine: FakeEngine) -> None:
    """None may be kept; each run then starts a runner of its own."""
    with sync.Host(engine=engine, spares=0) as host:
        assert host.run(HELLO) == "hello"
        assert host.stats().runs.spares_parked == 0


def test_a_spare_gets_the_limits_of_its_run(engine: FakeEngine) -> None:
    """Limits bind a run in a spare as they bind any other, and what the spare did before does not count."""
    flood = HELLO.replace("return 'hello'", "while True: print('x' * 1000, flush=True)")
    with sync.Host(engine=engine, spares=1) as host:
        program = host.load(flood)
        for limits, code in (
            (tartlet.Limits(max_output_bytes=10_000), "output_limit"),
            (tartlet.Limits(max_host_calls=50), "host_call_limit"),
            (tartlet.Limits(max_cpu_ms=20, max_output_bytes=None), "cpu_limit"),
        ):
            wait_for_spares(host, 1)
            with pytest.raises(tartlet.LimitExceededError) as caught:
                host.run(program, limits=limits)
            assert caught.value.code == code
        assert host.stats().runs.spares_taken == 3


def test_a_run_with_less_memory_than_a_spare_has(engine: FakeEngine) -> None:
    """It does not get a spare, and is refused as it would be without spares."""
    with sync.Host(engine=engine, spares=1) as host:
        program = host.load(HELLO)
        wait_for_spares(host, 1)

        with pytest.raises(tartlet.LimitExceededError) as caught:
            host.run(program, limits=tartlet.Limits(max_memory_bytes=16 << 20))

        assert caught.value.code == "memory_limit"
        assert host.stats().runs.spares_missed == 1


@pytest.mark.skipif(node_tool().version is None, reason=f"Node.js is not installed: {node_tool().hint}")
def test_each_language_has_spares_of_its_own(engine: FakeEngine, tmp_path: Path) -> None:
    """A program is not given to a runner of another language."""
    (tmp_path / "main.js").write_text("export default () => 'hallo';\n")
    with sync.Host(engine=engine, spares=1) as host:
        programs = host.load(HELLO), host.load(tmp_path)
        wait_for_spares(host, 2)

        assert [host.run(program) for program in programs] == ["hello", "hallo"]
        assert host.stats().runs.spares_taken == 2
