"""What users of the Python API write; `mypy --strict` must accept it (tests/typing/test_typing.py runs it)."""

from pathlib import Path
from typing import assert_type

import tartlet
from tartlet import sync
from tartlet.testing import FakeEngine


async def asynchronous() -> None:
    """Every call of the asynchronous API."""
    async with tartlet.Host(model="tiny", dtype="auto", threads=None, kv_pages=None, spares=0) as host:
        assert_type(host, tartlet.Host)
        program = await host.load(Path("best_of_n.wasm"), name="best")
        assert_type(program, tartlet.Program)
        run = await host.start(program, input={"n": 5}, limits=tartlet.Limits(max_tokens=2000), seed=None)
        assert_type(run, tartlet.Run)
        async for event in run:
            match event:
                case tartlet.Output(text):
                    assert_type(text, str)
                case tartlet.Log(level, message):
                    print(level, message)
                case tartlet.RunUsage():
                    assert_type(event.first_token_ms, float | None)
        try:
            print(await run.result())
        except tartlet.LimitExceededError as error:
            print(error.limit, error.used, error.allowed, error.code, error.hint)
        run.cancel()
        assert_type(host.stats(), tartlet.HostStats)


def synchronous() -> None:
    """Every call of its twin."""
    with sync.Host(engine=FakeEngine(["reply"])) as host:
        run = host.start(b"wasm", {"n": 1})
        assert_type(run, sync.Run)
        for event in run:
            assert_type(event, tartlet.Output | tartlet.Log | tartlet.Variable | tartlet.RunUsage)
        print(run.result(), run.usage.tokens_per_second, host.run("a\nb"))
