import asyncio
import gc
import inspect
import math
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import tartlet
from tartlet import compose
from tartlet.testing import FakeEngine
from tartlet_engine.api import Command, OpenRun

pytestmark = pytest.mark.runner

ECHO = """
from tartlet_sdk import Model, inferlet
@inferlet
async def main(text: str = "hello", n: int = 1):
    context = Model.default().context()
    context.user(text)
    forks = [context.fork() for _ in range(n)]
    drafts = [await fork.generate() for fork in forks]
    print(drafts[0].text)
    return [draft.text for draft in drafts]
"""
WAIT = "import asyncio\nfrom tartlet_sdk import inferlet\n@inferlet\nasync def main():\n    await asyncio.sleep(3600)\n"
ENDLESS = """
from tartlet_sdk import Model, inferlet
@inferlet
async def main():
    context = Model.default().context()
    context.fill("x" * 200_000)
    async for chunk in context.generate():
        print(chunk.text, end="", flush=True)
"""


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    engine = FakeEngine(context_len=10**6, num_pages=10**6)
    yield engine
    engine.check_integrity()
    assert engine.stats().pages_held == engine.stats().runs == 0
    engine.close()


def our_threads() -> set[threading.Thread]:
    """The threads that Tartlet has started and that still run; fixtures of other tests may have some, too."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("tartlet")}


async def test_the_readme_example(engine: FakeEngine) -> None:
    """Load, start, iterate over the events, take the result."""
    async with tartlet.Host(engine=engine) as host:
        program = await host.load(ECHO)
        run = await host.start(
            program, input={"text": "hello, world, how are you?", "n": 2}, limits=tartlet.Limits(max_tokens=2000)
        )
        events = [event async for event in run]
        result = await run.result()

    assert result == ["hello, world, how are you?"] * 2
    assert events[0] == tartlet.Output("hello, world, how are you?\n")
    usage = events[-1]
    assert isinstance(usage, tartlet.RunUsage)
    assert (usage.generated_tokens, usage.forks, usage.generations) == (54, 2, 2)
    assert usage.first_token_ms is not None
    assert usage.shared_pages > 0
    assert usage.page_seconds > 0
    assert run.usage == usage


async def test_many_runs_at_once(engine: FakeEngine) -> None:
    """A hundred runs started at once all give their own result."""
    async with tartlet.Host(engine=engine) as host:
        program = await host.load(ECHO)
        results = await asyncio.gather(*(host.run(program, {"text": f"run {i}"}) for i in range(100)))

    assert results == [[f"run {i}"] for i in range(100)]


async def test_the_loop_is_not_blocked(engine: FakeEngine) -> None:
    """While programs load and spin, the loop goes on turning."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    async with tartlet.Host(engine=engine) as host:
        counting = asyncio.create_task(count())
        spin = await host.load("from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    while True: pass\n")
        with pytest.raises(tartlet.LimitExceededError):
            await host.run(spin, limits=tartlet.Limits(max_cpu_ms=200))
        counting.cancel()

    assert turns > 20


async def test_cancelling_the_task_that_waits(engine: FakeEngine) -> None:
    """`result` can be given up without harm; `Host.run` takes the run with it."""
    async with tartlet.Host(engine=engine) as host:
        program = await host.load(WAIT)
        run = await host.start(program)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.result(), 0.01)
        assert not run.has_ended

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.run(program), 0.01)
        while host.stats().runs.live > 1:
            await asyncio.sleep(0.001)

    assert run.has_ended


async def test_an_engine_serves_one_host_at_a_time(engine: FakeEngine) -> None:
    """A second host is refused by name, the runs of the first go on; when that has closed, another may."""
    async with tartlet.Host(engine=engine) as first:
        before = our_threads()
        with pytest.raises(tartlet.ConfigError, match="another host"):
            await tartlet.Host(engine=engine).__aenter__()
        assert our_threads() == before
        assert await first.run(ECHO) == ["hello"]
    async with tartlet.Host(engine=engine) as second:
        assert await second.run(ECHO) == ["hello"]


async def test_leaving_cancels_what_still_runs(engine: FakeEngine) -> None:
    """At the end of the block every run has ended, as cancelled, and no thread is left."""
    async with tartlet.Host(engine=engine):
        pass  # what a process keeps for good is there from now on
    before = our_threads()

    async with tartlet.Host(engine=engine) as host:
        runs = [await host.start(source) for source in (WAIT, ENDLESS) * 3]

    for run in runs:
        with pytest.raises(tartlet.RunCancelledError, match="the host is closing"):
            await run.result()
    assert our_threads() == before


async def test_a_host_can_be_opened_again(engine: FakeEngine) -> None:
    """The same host, and another one, can use the engine after it was closed."""
    host = tartlet.Host(engine=engine)
    for _ in range(2):
        async with host:
            assert await host.run(ECHO) == ["hello"]


async def test_a_host_that_is_forgotten(engine: FakeEngine) -> None:
    """A host that nobody closed says so when it goes."""
    host = tartlet.Host(engine=engine)
    await host.__aenter__()
    host.itself = host  # type: ignore[attr-defined]  # so that it goes when garbage is collected, and no earlier
    supervisor = host._supervisor
    assert supervisor is not None

    del host
    with pytest.warns(ResourceWarning, match="not closed"):
        gc.collect()
    await asyncio.to_thread(supervisor.close)


async def test_opening_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the wait for a model is cancelled, the engine that comes too late is closed."""
    before = our_threads()
    engine, loading = FakeEngine(), threading.Event()

    def load_slowly(*args: Any, **options: Any) -> FakeEngine:
        loading.wait()
        return engine

    monkeypatch.setattr(compose, "start_engine", load_slowly)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(tartlet.Host().__aenter__(), 0.01)
    loading.set()

    while our_threads() - before:
        await asyncio.sleep(0.001)


async def test_token_and_page_limits(engine: FakeEngine) -> None:
    """A run over its tokens or pages ends with the limit's name, its use and its allowance."""
    async with tartlet.Host(engine=engine) as host:
        for limits, code, limit in (
            (tartlet.Limits(max_tokens=3), "token_budget", "max_tokens"),
            (tartlet.Limits(max_kv_pages=3), "kv_limit", "max_kv_pages"),
        ):
            with pytest.raises(tartlet.LimitExceededError) as caught:
                await host.run(ECHO, {"text": "x" * 20}, limits=limits)
            assert (caught.value.code, caught.value.limit) == (code, limit)
            assert caught.value.used > caught.value.allowed


async def test_the_hosts_own_limits_are_the_default(engine: FakeEngine) -> None:
    """Limits given to the host hold for runs that bring none."""
    async with tartlet.Host(engine=engine, limits=tartlet.Limits(max_tokens=3)) as host:
        with pytest.raises(tartlet.LimitExceededError):
            await host.run(ECHO)
        assert await host.run(ECHO, limits=tartlet.Limits(max_tokens=100)) == ["hello"]


@pytest.mark.parametrize("bad", [{1, 2}, math.nan, object(), b"bytes"])
async def test_input_that_is_not_json(engine: FakeEngine, bad: Any) -> None:
    """It is refused before anything starts."""
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match="JSON"):
            await host.start(ECHO, {"text": bad})


async def test_input_that_is_too_deep_for_json(engine: FakeEngine) -> None:
    """It is refused as what cannot be written is."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match="JSON"):
            await host.start(ECHO, {"text": nested})


@pytest.mark.parametrize(
    "bad",
    [{"source": 5}, {"source": None}, {"source": ECHO, "name": 5}, {"source": ECHO, "name": "\ud800"}],
)
async def test_what_cannot_be_loaded(engine: FakeEngine, bad: Any) -> None:
    """An argument of another type is named at once."""
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match="program"):
            await host.load(**bad)


@pytest.mark.parametrize("name", inspect.signature(tartlet.Host).parameters)
@pytest.mark.parametrize("bad", [object(), 1.5])
def test_settings_of_another_type(name: str, bad: Any) -> None:
    """Every one is refused by name where it is written, and not when the model is loaded."""
    with pytest.raises(tartlet.ConfigError, match=f"{name} must be"):
        tartlet.Host(**{name: bad})


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"prefix_cache": "no"}, "prefix_cache must be True or False, got 'no'"),
        ({"threads": True}, "threads"),
        ({"kv_pages": 0}, "kv_pages"),
        ({"swap_bytes": -1}, "swap_bytes"),
        ({"limits": {"max_tokens": 5}}, "limits"),
        ({"engine": "tiny"}, "engine"),
    ],
)
def test_settings_that_look_right(bad: Any, named: str) -> None:
    """What Python would take for something else is refused."""
    with pytest.raises(tartlet.ConfigError, match=named):
        tartlet.Host(**bad)


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("start", {"program": ECHO, "tenant": 5}, "tenant"),
        ("start", {"program": ECHO, "tenant": "\ud800"}, "tenant"),
        ("start", {"program": 5}, "program"),
        ("run", {"program": ECHO, "tenant": ""}, "tenant"),
        ("run", {"program": ECHO, "seed": "1"}, "seed"),
        ("publish_prefix", {"prefix": b"x" * 100}, "token ids without a role, got bytes"),
        ("publish_prefix", {"prefix": "x" * 100, "adapter": 5}, "adapter"),
        ("publish_prefix", {"prefix": "x" * 100, "role": []}, "role"),
        ("unpublish_prefix", {"prefix_id": "1"}, "prefix_id"),
        ("set_tenant", {"tenant": None, "weight": 1}, "tenant"),
        ("set_tenant", {"tenant": "a", "weight": "1"}, "weight"),
        ("saved_contexts", {"tenant": b"local"}, "tenant"),
        ("delete_saved", {"tenant": 5, "name": "a"}, "tenant"),
        ("delete_saved", {"tenant": "a", "name": 5}, "name"),
    ],
)
async def test_arguments_of_another_type(engine: FakeEngine, method: str, arguments: Any, named: str) -> None:
    """Every method names the argument."""

    async def call() -> None:
        result = getattr(host, method)(**arguments)
        if inspect.isawaitable(result):
            await result

    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match=named):
            await call()


async def test_tenants_have_weights(engine: FakeEngine) -> None:
    """Runs go to the engine with their tenant, and the weight that was set for it; looking at contexts keeps it."""
    opened: list[OpenRun] = []
    submit = engine.submit

    def listen(commands: Sequence[Command], run_id: int | None = None) -> None:
        opened.extend(command for command in commands if isinstance(command, OpenRun))
        submit(commands, run_id)

    engine.submit = listen  # type: ignore[method-assign]
    async with tartlet.Host(engine=engine) as host:
        await host.run(ECHO)
        host.set_tenant("a", weight=2)
        await host.run(ECHO, tenant="a")
        await host.saved_contexts("a")
        await host.run(ECHO, tenant="b")

    assert [(run.tenant, run.weight) for run in opened] == [("local", 1.0), ("a", 2.0), ("a", 2.0), ("b", 1.0)]


SAVE = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(name: str) -> None:
    context = Model.default().context()
    context.fill("Once upon a time")
    await context.save(name)
"""


async def test_the_operator_sees_what_tenants_save(engine: FakeEngine) -> None:
    """By tenant and name, with size; what is deleted is gone, and what is not there is an error."""
    async with tartlet.Host(engine=engine) as host:
        await host.run(SAVE, {"name": "one"})
        await host.run(SAVE, {"name": "two"}, tenant="other")

        assert [saved.name for saved in await host.saved_contexts()] == ["one"]
        (saved,) = await host.saved_contexts("other")
        assert (saved.name, saved.num_tokens, saved.model) == ("two", 16, "fake")
        await host.delete_saved("other", "two")
        assert await host.saved_contexts("other") == []
        with pytest.raises(tartlet.ConfigError, match="no saved context 'one'") as caught:
            await host.delete_saved("other", "one")
        assert caught.value.code == "not_found"


async def test_limits_of_another_type(engine: FakeEngine) -> None:
    """A dict, for example, is not silently taken for no limits."""
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match=r"tartlet\.Limits"):
            await host.start(ECHO, limits={})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "1"])
async def test_a_seed_out_of_range(engine: FakeEngine, seed: Any) -> None:
    """It is refused with the range."""
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.ConfigError, match=r"2\*\*64"):
            await host.start(ECHO, seed=seed)


async def test_a_host_that_is_not_open() -> None:
    """It says how to open it."""
    host = tartlet.Host(engine=None)

    with pytest.raises(tartlet.ConfigError, match="async with"):
        await host.load(ECHO)
    with pytest.raises(tartlet.ConfigError, match="async with"):
        host.stats()
    with pytest.raises(tartlet.ConfigError, match="spares"):
        tartlet.Host(spares=-1)


async def test_the_guests_traceback_reaches_the_caller(engine: FakeEngine) -> None:
    """An exception in the program comes with its own traceback: file, line and text."""
    source = "from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    return {}['missing']\n"
    async with tartlet.Host(engine=engine) as host:
        with pytest.raises(tartlet.GuestError) as caught:
            await host.run(source)

    text = str(caught.value)
    assert 'File "main.py", line 4, in main' in text
    assert "return {}['missing']" in text
    assert text.rstrip().endswith("KeyError: 'missing'")
