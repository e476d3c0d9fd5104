"""Completes a text: waits for the whole of it, or takes every chunk as it comes."""

from tartlet_sdk import Model, Sampler, ignore_eos, inferlet
from tartlet_sdk import max_tokens as stop_after


@inferlet
async def completion(prompt: str, max_tokens: int, stream: bool) -> int:
    """Continue `prompt` by exactly so many tokens; return how many there were."""
    context = Model.default().context()
    context.fill(prompt)
    generation = context.generate(Sampler.greedy(), stop=stop_after(max_tokens) | ignore_eos())
    if not stream:
        return len((await generation).tokens)
    text = ""
    async for chunk in generation:
        text += chunk.text
    return len(generation.result.tokens)
