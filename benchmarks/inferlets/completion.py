"""Completes a text: waits for the whole of it, or takes the chunks as they come."""

from tartlet_sdk import Model, Sampler, ignore_eos, inferlet
from tartlet_sdk import max_tokens as stop_after


@inferlet
async def completion(prompt: str, max_tokens: int, chunk_interval: float | None) -> int:
    """Continue `prompt` by exactly so many tokens; return how many there were. None: do not stream."""
    context = Model.default().context()
    context.fill(prompt)
    stop = stop_after(max_tokens) | ignore_eos()
    if chunk_interval is None:
        return len((await context.generate(Sampler.greedy(), stop=stop)).tokens)
    generation = context.generate(Sampler.greedy(), stop=stop, chunk_interval=chunk_interval)
    text = ""
    async for chunk in generation:
        text += chunk.text
    return len(generation.result.tokens)
