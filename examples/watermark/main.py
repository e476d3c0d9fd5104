"""Writes a text whose tokens favour a "green" half of the vocabulary that the token before chooses, and tests for it.

Source: Kirchenbauer et al. 2023, "A Watermark for Large Language Models" (arXiv 2301.10226).
"""

import itertools
import math
import random

from tartlet_sdk import Mask, Model, Sampler, inferlet

LISTS = 8  # green lists; the token before chooses one


@inferlet
async def watermark(
    prompt: str = "Write a short story about a baker.", tokens: int = 80, strength: float = 4.0, key: int = 15485863
) -> dict[str, float | str]:
    """Write twice, with and without the watermark, and tell how far each is from chance."""
    model = Model.default()
    green = green_lists(model, key)
    masks = [Mask.of(tokens, model) for tokens in green]
    context = model.context()
    context.user(prompt)
    context.cue()
    sampler = Sampler.temperature(0.9)
    plain = await context.fork().generate(sampler, max_tokens=tokens)

    async with context.steps(sampler, max_tokens=tokens) as steps:
        last = context.tokens[-1]
        while steps.finish_reason is None:
            outcome = await steps.next(boost={masks[list_of(last, key)]: strength})
            last = outcome.tokens[-1] if outcome.tokens else last
        text, marked = steps.text, steps.tokens

    print(text)
    return {"text": text, "z_marked": z_score(marked, green, key), "z_plain": z_score(list(plain.tokens), green, key)}


def green_lists(model: Model, key: int) -> list[set[int]]:
    """Half of the vocabulary, drawn anew for each list; who has the key can draw them again."""
    size = model.info.vocabulary_size
    return [set(random.Random(key + number).sample(range(size), size // 2)) for number in range(LISTS)]


def list_of(token: int, key: int) -> int:
    """Which list holds after a token."""
    return (token * 2654435761 ^ key) % (1 << 32) * LISTS >> 32


def z_score(tokens: list[int], green: list[set[int]], key: int) -> float:
    """By how many standard deviations more tokens are green than chance would have it; above 4 is no chance."""
    pairs = list(itertools.pairwise(tokens))
    hits = sum(token in green[list_of(last, key)] for last, token in pairs)
    return round((hits - len(pairs) / 2) / math.sqrt(max(1, len(pairs)) / 4), 2)
