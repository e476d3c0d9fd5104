"""Reasons several times from one prompt, and takes the answer that most of the ways lead to.

The method is that of Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language Models" (2022).
"""

import asyncio
from collections import Counter
from dataclasses import dataclass

from tartlet_sdk import Context, Model, Sampler, inferlet

QUESTION = "A baker makes 4 trays of 6 tarts and sells 15 of them. How many tarts are left?"


@dataclass
class Vote:
    """What most say, and how many of them."""

    answer: int
    share: float
    answers: list[int]


@inferlet
async def self_consistency(question: str = QUESTION, ways: int = 8) -> Vote:
    """Reason about a question in several ways at once, and vote."""
    with Model.default().context() as prompt:
        prompt.system("You solve problems step by step, in two or three short sentences.")
        prompt.user(question)
        await prompt.flush()
        answers = await asyncio.gather(*(reason(prompt.fork(), way + 1) for way in range(ways)))

    (answer, votes), *_ = Counter(answers).most_common()
    print(f"{votes} of {ways} say {answer}")
    return Vote(answer, round(votes / ways, 3), answers)


async def reason(context: Context, way: int) -> int:
    """Think aloud, then answer with a number: the constraint sees to it that there is one to count."""
    with context:
        await context.generate(Sampler.top_p(0.8, 0.95), max_tokens=64)
        context.fill("\nSo the answer is ")
        answer = await context.generate(regex=r"(0|[1-9][0-9]{0,3})\.")
    print(f"way {way}: {answer.text}")
    return int(answer.text.rstrip("."))
