"""Asks the model the same question several times at once, and lets it choose among its answers.

Run it: tartlet run . topic="tea"
"""

import asyncio

from tartlet_sdk import Model, Sampler, inferlet, max_tokens


@inferlet
async def main(topic: str = "bread", n: int = 3) -> str:
    """Write `n` slogans about a topic and return the one that the model likes best."""
    model = Model.default()
    base = model.context()
    base.user(f"Write a slogan about {topic}. Answer with the slogan only.")

    # A fork shares the pages of its parent: the prompt is computed once, not n times.
    forks = [base.fork() for _ in range(n)]
    sampler = Sampler.top_p(0.8, 0.95)
    drafts = await asyncio.gather(*(fork.generate(sampler, stop=max_tokens(32)) for fork in forks))
    for number, draft in enumerate(drafts, start=1):
        print(f"{number}. {draft.text.strip()}")

    judge = model.context()
    listed = "\n".join(f"{number}. {draft.text.strip()}" for number, draft in enumerate(drafts, start=1))
    judge.user(f"Which of these slogans is the best, and why?\n{listed}")
    verdict = await judge.generate(Sampler.greedy(), stop=max_tokens(48))
    return verdict.text.strip()
