"""Programs cannot tell whether the engine is in their host's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tartlet import compose, sync
from tartlet.errors import RunError
from tartlet.server.engine.settings import EngineSettings
from tartlet.server.wire.socket_folder import SocketFolder
from tests.host.server.engine.conftest import EngineProcess

pytestmark = pytest.mark.runner

EXAMPLES = Path(__file__).parents[4] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/main.py"))


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[sync.Host, sync.Host]]:
    """One with the tiny model in its process, one with the same in another."""
    with SocketFolder() as folder:
        settings = EngineSettings(model="tiny", dtype="float32", kv_pages=256, threads=1)
        process = EngineProcess(folder.socket_path("engine"), settings)
        engine = compose.start_engine("tiny", dtype="float32", kv_pages=256, threads=1)
        with closing(process), closing(engine):
            client = process.connect()
            with sync.Host(engine=engine) as inside, sync.Host(engine=client) as outside:
                yield inside, outside
            for each in (engine, client):
                each.check_integrity()
                assert (each.stats().runs, each.stats().contexts, each.stats().pages_held) == (0, 0, 0)


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
