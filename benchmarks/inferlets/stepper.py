"""Writes several texts at once, generated plainly or token by token, and tells how long that took."""

import asyncio
import time

from tartlet_sdk import Context, Model, ignore_eos, inferlet


@inferlet
async def stepper(sequences: int, tokens: int, way: str, think_s: float = 0.0, others: int = 0) -> float:
    """Return the seconds from the first to the last token of all; prompts are computed before.

    way: "plain" generates, "steps" goes token by token, and thinks (waits) for so long before each answer.
    others: so many more go token by token beside them, and think for so long, until those have ended.
    """
    model = Model.default()
    contexts = [model.context() for _ in range(sequences)]
    for number, context in enumerate(contexts):
        context.fill(f"Story {number}: the sea was calm, and")
    await asyncio.gather(*(context.flush() for context in contexts))
    beside = [asyncio.create_task(write(contexts[0].fork(), 100 * tokens, think_s)) for _ in range(others)]
    began = time.monotonic()
    if way == "plain":
        await asyncio.gather(*(context.generate(max_tokens=tokens, stop=ignore_eos()) for context in contexts))
    else:
        await asyncio.gather(*(write(context, tokens, think_s) for context in contexts))
    seconds = time.monotonic() - began
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    return seconds


async def write(context: Context, tokens: int, think_s: float) -> None:
    """Write so many tokens, one at a time."""
    async with context.steps(max_tokens=tokens, stop=ignore_eos()) as steps:
        while steps.finish_reason is None:
            if think_s:
                await asyncio.sleep(think_s)
            await steps.next()
