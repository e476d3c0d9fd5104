"""Writes the skeleton of an answer first, then all of its points at once.

The method is that of Ning et al., "Skeleton-of-Thought: Prompting LLMs for Efficient Parallel Generation" (2023).
"""

import asyncio
from dataclasses import dataclass

from tartlet_sdk import Context, Model, Sampler, inferlet, max_tokens, stop_strings

QUESTION = "What should I think of before I open a bakery?"
SKELETON = r"(- [A-Z][a-z]{2,12}( [a-z]{2,12}){1,3}\n){2,4}"
"""Two to four lines of two to four words each."""


@dataclass
class Answer:
    """The points, and the text of each."""

    points: list[str]
    texts: list[str]


@inferlet
async def skeleton_of_thought(question: str = QUESTION) -> Answer:
    """Answer a question point by point."""
    with Model.default().context() as context:
        context.user(f"{question}\nReply with a list of two to four points, of a few words each.")
        skeleton = await context.generate(Sampler.top_p(0.8, 0.9), regex=SKELETON)
        points = [line.removeprefix("- ") for line in skeleton.text.splitlines()]
        # Each fork has question and skeleton, so a point knows of the others, and none waits for another.
        texts = await asyncio.gather(*(expand(context.fork(), point) for point in points))

    for point, text in zip(points, texts, strict=True):
        print(f"{point}: {text}\n")
    return Answer(points, texts)


async def expand(context: Context, point: str) -> str:
    """Write about one point."""
    with context:
        context.user(f'Now write one or two sentences about the point "{point}".')
        draft = await context.generate(stop=max_tokens(48) | stop_strings("\n"))
    return draft.text.strip()
