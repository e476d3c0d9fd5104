"""Programs cannot tell whether the engine is in their host's process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tartlet import compose, sync
from tartlet.errors import RunError
from tartlet.server.engine.settings import EngineSettings
from tartlet.server.wire.socket_folder import SocketFolder
from tests.host.server.engine.conftest import EngineProcess, nothing_held

pytestmark = pytest.mark.runner

EXAMPLES = Path(__file__).parents[4] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/main.py"))


@pytest.fixture(scope="module")
def process() -> Iterator[EngineProcess]:
    """The tiny model in a process of its own."""
    with SocketFolder() as folder:
        settings = EngineSettings(model="tiny", dtype="float32", kv_pages=256, threads=1)
        with closing(EngineProcess(folder.socket_path("engine"), settings)) as process:
            yield process


@pytest.fixture(scope="module")
def hosts(process: EngineProcess) -> Iterator[tuple[sync.Host, sync.Host]]:
    """One with the tiny model in its process, one with the same in another."""
    with closing(compose.start_engine("tiny", dtype="float32", kv_pages=256, threads=1)) as engine:
        client = process.connect()
        with sync.Host(engine=engine) as inside, sync.Host(engine=client) as outside:
            yield inside, outside
        for each in (engine, client):
            each.check_integrity()
            assert nothing_held(each.stats())


def outcome(host: sync.Host, program: Path) -> dict[str, Any]:
    """What a run gives and uses. What it prints depends on which of its generations is told first."""
    run = host.start(program, seed=7)
    try:
        result = run.result()
    except RunError as error:
        result = (error.code, error.message)
    usage = run.usage
    return {
        "result": result,
        "tokens": (usage.prompt_tokens, usage.generated_tokens, usage.generations, usage.forks),
    }


@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_the_same_over_a_socket(hosts: tuple[sync.Host, sync.Host], name: str) -> None:
    """The same tokens from the same seed, the same result or error."""
    inside, outside = (outcome(host, EXAMPLES / name) for host in hosts)

    assert inside == outside


WRITER = """
import asyncio
from tartlet_sdk import Model, ignore_eos, inferlet

@inferlet
async def main(texts: int, tokens: int) -> list:
    contexts = [Model.default().context() for _ in range(texts)]
    for number, context in enumerate(contexts):
        context.fill(f"Story {number}: the sea was calm, and")
    drafts = await asyncio.gather(*(each.generate(max_tokens=tokens, stop=ignore_eos()) for each in contexts))
    return [draft.text for draft in drafts]
"""


def test_two_hosts_at_once_get_what_each_gets_alone(hosts: tuple[sync.Host, sync.Host], process: EngineProcess) -> None:
    """Their generations are in the same steps; the tokens are those of a host that has the engine to itself."""
    inside, outside = hosts
    with sync.Host(engine=process.connect()) as other:
        runs = [
            host.start(WRITER, {"texts": 3, "tokens": 40}, seed=seed) for seed in range(3) for host in (outside, other)
        ]
        at_once = [run.result() for run in runs]
    alone = [inside.run(WRITER, {"texts": 3, "tokens": 40}, seed=seed) for seed in range(3)]

    assert at_once == [each for each in alone for _ in range(2)]


# A host that has runs without an end, tells so and waits.
DOOMED = """
import sys
from pathlib import Path
from tartlet import sync
from tartlet.server.engine.socket_client import connect_engine

client = connect_engine(Path(sys.argv[1]))
with sync.Host(engine=client, spares=0) as host:
    runs = [host.start(sys.argv[2], {"texts": 5, "tokens": 1500}) for _ in range(4)]
    while client.stats().generated_tokens < int(sys.argv[3]):
        pass
    print("under way", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_host_held_is_freed(hosts: tuple[sync.Host, sync.Host], process: EngineProcess) -> None:
    """With generations under way, which fill the cache: no page is left, and another host has all that is its own."""
    inside, outside = hosts
    client = process.connect()
    begun = client.stats().generated_tokens + 100
    command = [sys.executable, "-c", DOOMED, str(process.path), WRITER, str(begun)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "under way\n"
        run = outside.start(WRITER, {"texts": 2, "tokens": 30}, seed=5)
        doomed.kill()
    result = run.result()
    deadline = time.monotonic() + 60
    while not nothing_held(client.stats()):
        assert time.monotonic() < deadline, client.stats()
        time.sleep(0.01)
    client.check_integrity()

    assert result == inside.run(WRITER, {"texts": 2, "tokens": 30}, seed=5)
