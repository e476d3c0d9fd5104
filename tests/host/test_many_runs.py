"""A thousand runs that end in every way leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections import Counter
from typing import Any

import psutil
import pytest

import tartlet
from tartlet.testing import FakeEngine

pytestmark = [pytest.mark.runner, pytest.mark.slow]

HEAD = "import asyncio, time\nfrom tartlet_sdk import *\n@inferlet\nasync def main():\n"
FORKS = """
    base = Model.default().context()
    base.user("Count the forks that share this prompt, please.")
    forks = [base.fork() for _ in range(5)]
    drafts = await asyncio.gather(*(fork.generate(max_tokens=20) for fork in forks))
    async for chunk in base.generate(max_tokens=10):
        print(chunk.text, end="")
    return len(drafts)
"""
GENERATE = """
    context = Model.default().context()
    context.fill("x" * {})
    await context.generate()
"""
SOURCES = {
    "hello": "    print('hello')\n    return 1\n",
    "forks": FORKS,
    "raises": "    raise ValueError('no')\n",
    "waits": "    await asyncio.sleep(3600)\n",
    "generates for ever": GENERATE.format(3000),
    "too many tokens": GENERATE.format(500),
}
LIMITS = {
    "too many tokens": tartlet.Limits(max_tokens=5),
    "output": tartlet.Limits(max_output_bytes=100),
    "handles": tartlet.Limits(max_handles=10),
}
CANCELLED = ("waits", "generates for ever")
EXPECTED = {"hello": 1, "forks": 5, "raises": "guest_error", "too many tokens": "token_budget", "trap": "trap"}
EXPECTED |= {"output": "output_limit", "handles": "handle_limit", "ok": None, "waits": "cancelled"}
NUM_RUNS = 1000
AT_ONCE = 50


async def load_all(host: tartlet.Host, component: Any) -> dict[str, tartlet.Program]:
    programs = {name: await host.load(HEAD + body) for name, body in SOURCES.items()}
    flood = "(loop $l {} (br $l))"
    programs["ok"] = await host.load(component(""))
    programs["trap"] = await host.load(component("unreachable"))
    programs["output"] = await host.load(
        component(flood.format("(call $print (i32.const 64) (i32.const 4))"), uses=("log",))
    )
    programs["handles"] = await host.load(
        component(flood.format("(drop (call $timer (i64.const 1000000000000)))"), uses=("events",))
    )
    return programs


async def run_one(host: tartlet.Host, name: str, program: tartlet.Program, delay: float) -> Any:
    """The result of one run, or the code of its error."""
    run = await host.start(program, limits=LIMITS.get(name))
    if name in CANCELLED:
        await asyncio.sleep(delay)
        run.cancel()
    try:
        return await run.result()
    except tartlet.RunError as error:
        return error.code


async def run_many(host: tartlet.Host, programs: dict[str, tartlet.Program], number: int, seed: int) -> Counter[str]:
    """Runs programs drawn at random, some at once; how often each came. Each must end as it should."""
    draw = random.Random(seed)
    places = asyncio.Semaphore(AT_ONCE)
    names = draw.choices(list(programs), k=number)

    async def one(name: str, delay: float) -> None:
        async with places:
            result = await run_one(host, name, programs[name], delay)
        assert name == "generates for ever" or result == EXPECTED[name], (name, result)

    await asyncio.gather(*(one(name, draw.random() * 0.02) for name in names))
    return Counter(names)


async def test_nothing_is_left(component: Any) -> None:
    """No page, handle, store, thread or timer is left, and memory is flat."""
    engine = FakeEngine()
    process = psutil.Process()
    async with tartlet.Host(engine=engine) as host:
        programs = await load_all(host, component)
        await run_many(host, programs, 300, seed=0)  # what allocators and caches keep is there from now on
        gc.collect()
        before, threads = process.memory_info().rss, threading.active_count()

        counts = await run_many(host, programs, NUM_RUNS, seed=1)

        gc.collect()
        grown = process.memory_info().rss - before
        stats = host.stats()
        engine.check_integrity()
        assert len(counts) == len(programs)
        assert (stats.runs.live, stats.engine.runs, stats.engine.contexts) == (0, 0, 0)
        assert stats.engine.pages_free == stats.engine.pages_total
        assert stats.runs.stores <= 2  # the spares, parked or starting
        assert threading.active_count() <= threads + 1  # asyncio's own pool may still grow
        assert grown < 16 << 20, f"{grown:,} bytes more"
    engine.close()
