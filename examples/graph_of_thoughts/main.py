"""Sorts numbers by a graph of thoughts: split, sort each part in several ways, keep the best, merge the parts.

The method, and the task, are those of Besta et al., "Graph of Thoughts: Solving Elaborate Problems with Large Language
Models" (2023). A thought of the graph may come from several others, which a tree of thoughts does not have.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from tartlet_sdk import Context, Model, Sampler, inferlet

NUMBERS = [7, 3, 9, 1, 4, 8, 2, 6]
EXAMPLES = (([4, 1, 3], [1, 3, 4]), ([8, 2, 5, 2], [2, 2, 5, 8]))


@dataclass
class Sorted:
    """The numbers in the order found, and how far from sorted that is: 0 is right."""

    numbers: list[int]
    errors: int


@inferlet
async def graph_of_thoughts(numbers: list[int] = NUMBERS, part: int = 4, ways: int = 4) -> Sorted:
    """Sort digits, `part` of them at a time, each part and each merge in several `ways`."""
    if not all(0 <= number <= 9 for number in numbers):
        raise ValueError("all numbers must be digits, 0 to 9")
    prompt = Model.default().context()
    for unsorted, right in EXAMPLES:
        prompt.user(f"Sort: {unsorted}")
        prompt.assistant(f"{right}")
    await prompt.flush()

    parts = [numbers[start : start + part] for start in range(0, len(numbers), part)]
    thoughts = await asyncio.gather(*(best_order(prompt, each, ways) for each in parts))
    while len(thoughts) > 1:
        pairs = [thoughts[start : start + 2] for start in range(0, len(thoughts), 2)]
        print(" | ".join(" + ".join(map(str, pair)) for pair in pairs))
        thoughts = await asyncio.gather(
            *(best_order(prompt, [number for each in pair for number in each], ways) for pair in pairs)
        )

    [result] = thoughts
    print(f"{result}, {errors(result, numbers)} errors")
    return Sorted(result, errors(result, numbers))


async def best_order(prompt: Context, numbers: list[int], ways: int) -> list[int]:
    """Sort in several ways at once, and keep the best."""
    candidates = await asyncio.gather(*(order(prompt.fork(), numbers) for _ in range(ways)))
    return min(candidates, key=lambda candidate: errors(candidate, numbers))


async def order(context: Context, numbers: list[int]) -> list[int]:
    """Let the model sort: a list of as many digits, which may still be the wrong ones."""
    pattern = r"\[" + ", ".join(["[0-9]"] * len(numbers)) + r"\]"
    with context:
        context.user(f"Sort: {numbers}")
        draft = await context.generate(Sampler.top_p(0.7, 0.95), regex=pattern)
    return [int(digit) for digit in draft.text.strip("[]").split(", ")]


def errors(candidate: list[int], numbers: list[int]) -> int:
    """Count neighbours in the wrong order, and numbers that are missing."""
    disorder = sum(first > second for first, second in pairwise(candidate))
    return disorder + (Counter(numbers) - Counter(candidate)).total()
