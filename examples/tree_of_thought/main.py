"""Searches a tree of thoughts: every step is tried in several ways, and only the most promising are followed.

The method is that of Yao et al., "Tree of Thoughts: Deliberate Problem Solving with Large Language Models" (2023).
"""

import asyncio
import re
from dataclasses import dataclass

from tartlet_sdk import Context, Model, Sampler, inferlet, max_tokens

QUESTION = "A farmer has 17 sheep. All but 9 run away. How many sheep are left?"


@dataclass
class Thought:
    """A node of the tree: its context holds the question and all steps on the way here."""

    context: Context
    steps: list[str]
    score: int = 0


@inferlet
async def tree_of_thought(question: str = QUESTION, depth: int = 2, branches: int = 3, keep: int = 2) -> dict:
    """Think `depth` steps ahead, `branches` ways each, following the best `keep`; return the answer."""
    root = Model.default().context()
    root.system("You solve problems step by step. Each step is one short sentence.")
    root.user(question)
    frontier = [Thought(root, [])]

    for level in range(1, depth + 1):
        grown = await asyncio.gather(*(grow(thought) for thought in frontier for _ in range(branches)))
        frontier = sorted(grown, key=lambda thought: thought.score, reverse=True)[:keep]
        for thought in frontier:
            print(f"step {level}, score {thought.score}: {thought.steps[-1]}")

    best = frontier[0]
    best.context.user("So what is the answer?")
    answer = await best.context.generate(Sampler.greedy(), stop=max_tokens(32))
    return {"answer": answer.text.strip(), "steps": best.steps, "score": best.score}


async def grow(parent: Thought) -> Thought:
    """Take one more step in a fork of the parent, and judge it."""
    context = parent.context.fork()
    context.user("Think about the next step.")
    draft = await context.generate(Sampler.top_p(0.9, 0.95), stop=max_tokens(40))
    step = " ".join(draft.text.split())
    return Thought(context, [*parent.steps, step], await score(context))


async def score(context: Context) -> int:
    """Ask, in a fork that is thrown away, how promising the last step is: 0 to 10."""
    with context.fork() as judge:
        judge.user("How likely is it that this leads to the right answer? Reply with a number from 0 to 10.")
        verdict = await judge.generate(Sampler.greedy(), stop=max_tokens(6))
    number = re.search(r"\d+", verdict.text)
    return min(int(number.group()), 10) if number else 0
