from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tartlet.errors import EngineStoppedError
from tartlet.server.engine.messages import AskStats
from tartlet.server.engine.probe import EngineProbe
from tartlet.server.wire.socket_folder import SocketFolder
from tartlet_engine.api import AppendTokens, CreateContext, Finished, Generate, OpenRun, Sampling, Stop
from tests.host.server.engine.conftest import Recorder, Served, StartEngine


async def connected(path: object) -> EngineProbe:
    """A probe, as soon as the engine is there."""
    while True:
        try:
            return await EngineProbe.connect(path)  # type: ignore[arg-type]
        except EngineStoppedError:
            await asyncio.sleep(0.02)


async def test_it_tells_of_the_engine(served: Served) -> None:
    """Its models, its counters, and that it goes on; several questions at once."""
    probe = await EngineProbe.connect(served.path)
    stats, *_ = await asyncio.gather(probe.stats(), probe.ping(), probe.ping())

    assert [info.name for info in probe.models] == ["fake"]
    assert stats.pages_total == 4096
    await probe.close()
    await probe.close()


async def test_no_engine_is_a_typed_error(socket_folder: SocketFolder) -> None:
    """Nobody listens yet."""
    with pytest.raises(EngineStoppedError, match="there is no engine"):
        await EngineProbe.connect(socket_folder.socket_path("nobody"))


async def test_an_engine_that_hangs_does_not_answer(start_process: StartEngine) -> None:
    """How long to wait, the caller says; a question that was given up does no harm when it is answered at last."""
    process = start_process()
    probe = await connected(process.path)
    process.hold()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await probe.ping()
    process.go_on()

    await probe.ping()
    await probe.close()


async def test_an_answer_to_who_gives_up_in_that_moment_does_no_harm(served: Served) -> None:
    """The question is still there, and nobody waits any more."""
    probe = await EngineProbe.connect(served.path)
    probe._requests[99] = given_up = asyncio.get_running_loop().create_future()
    given_up.cancel()
    probe._stream.send(AskStats(99))

    await probe.ping()
    await probe.ping()
    del probe._requests[99]
    await probe.close()


async def test_the_end_of_the_engine_is_heard_at_once(start_process: StartEngine) -> None:
    """By who waits for it, by who has asked, and by who asks later."""
    process = start_process()
    probe = await connected(process.path)
    process.hold()
    asked = asyncio.create_task(probe.stats())
    lost = asyncio.create_task(probe.wait_lost())
    await asyncio.sleep(0)
    process.process.kill()

    await lost
    with pytest.raises(EngineStoppedError, match="lost"):
        await asked
    with pytest.raises(EngineStoppedError, match="lost"):
        await probe.ping()
    await probe.close()


def test_the_front_can_import_it() -> None:
    """It loads neither Wasmtime nor the model's side."""
    code = "import sys, tartlet.server.engine.probe; print(sorted({'wasmtime', 'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


async def test_what_a_lost_client_had_used_is_told(served: Served) -> None:
    """Of its runs that were open: tokens, and the time of their pages; by their names, as soon as they are closed."""
    client = served.connect()
    heard = Recorder(client)
    run_id, context_id, generation_id = client.new_id(), client.new_id(), client.new_id()
    generate = Generate(generation_id, context_id, Sampling(seed=0), Stop(max_tokens=4))
    opened = OpenRun(run_id, name="run_a")
    client.submit([opened, CreateContext(context_id, run_id), AppendTokens(context_id, (97,) * 20), generate], run_id)
    heard.wait_for(Finished)
    probe = await EngineProbe.connect(served.path)
    before = await probe.totals(["run_a"])
    client.close()
    async with asyncio.timeout(60):
        while not (totals := await probe.totals(["run_a", "run_b"])):
            await asyncio.sleep(0)
    await probe.close()

    assert before == {}
    assert list(totals) == ["run_a"]
    assert (totals["run_a"].prompt_tokens, totals["run_a"].generated_tokens) == (20, 4)
    assert totals["run_a"].page_ns > 0
