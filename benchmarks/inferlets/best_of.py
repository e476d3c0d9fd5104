"""Generates several times after the same prompt: in forks of one context, or in separate contexts."""

import asyncio

from tartlet_sdk import Model, Sampler, ignore_eos, inferlet
from tartlet_sdk import max_tokens as stop_after


@inferlet
async def best_of(prompt: list[int], n: int, max_tokens: int, fork: bool) -> int:
    """Generate `n` times exactly `max_tokens` tokens; return how many there were in all."""
    model = Model.default()
    if fork:
        base = model.context()
        base.fill_tokens(prompt)
        contexts = [base.fork() for _ in range(n)]
    else:
        contexts = [model.context() for _ in range(n)]
        for context in contexts:
            context.fill_tokens(prompt)
    stop = stop_after(max_tokens) | ignore_eos()
    drafts = await asyncio.gather(*(context.generate(Sampler.top_p(0.8, 0.95), stop=stop) for context in contexts))
    return sum(len(draft.tokens) for draft in drafts)
