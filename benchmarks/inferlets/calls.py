"""Measures calls from Python to the host: microseconds each."""

import asyncio
import time
from collections.abc import Callable

from tartlet_sdk import Model, inferlet, run, wit


@inferlet
async def calls(n: int) -> dict[str, float]:
    """Make each call `n` times."""
    model = Model.default()
    context = model.context()
    poll = wit.events.poll
    figures = {
        "poll, only looks": repeat(n, lambda: poll([], 0)),
        "poll, waits 1 ns": repeat(n, lambda: poll([], 1)),
        "models.info": repeat(n, model._handle.info),
        "len(context)": repeat(n, context.__len__),
        "run.info()": repeat(n, run.info),
    }
    began = time.perf_counter_ns()
    for _ in range(n):
        await asyncio.sleep(1e-9)
    figures["await sleep(1 ns)"] = (time.perf_counter_ns() - began) / n / 1000
    return figures


def repeat(n: int, call: Callable[[], object]) -> float:
    """Microseconds per call."""
    began = time.perf_counter_ns()
    for _ in range(n):
        call()
    return (time.perf_counter_ns() - began) / n / 1000
