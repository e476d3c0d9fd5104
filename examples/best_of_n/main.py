"""Writes N candidates at once, all forked from one prompt, and lets the model choose among them."""

import asyncio
import re
from dataclasses import dataclass

from tartlet_sdk import Context, Model, Sampler, inferlet, max_tokens, stop_strings

TASK = "Write a catchy, on-brand email subject line for a 20% off Fall skincare sale."
LINE = 60  # characters


@dataclass
class Best:
    """What comes of it."""

    best: str
    candidates: list[str]
    decision: str


@inferlet
async def best_of_n(n: int = 5, task: str = TASK) -> Best:
    """Write `n` candidates for a task and choose one."""
    model = Model.default()

    # One context holds the prompt. Its forks share the pages of the KV cache: the prompt is computed once, not n times.
    base = model.context()
    base.user(task)
    await base.flush()
    forks = [base.fork() for _ in range(n)]

    # All of them are written at once, with slightly different samplers, so that they differ.
    samplers = (Sampler.top_p(0.7, 0.95), Sampler.top_k(40))
    drafts = (write(fork, k, samplers[k % 2]) for k, fork in enumerate(forks, start=1))
    candidates = await asyncio.gather(*drafts)

    # The judge reads them in a context of its own.
    judge = model.context()
    listed = "\n".join(f"{k}. {candidate}" for k, candidate in enumerate(candidates, start=1))
    judge.user(f"{task}\n\nThese are the candidates:\n{listed}\n\nWhich one is the best? Begin with its number.")
    decision = (await judge.generate(Sampler.greedy(), stop=max_tokens(48))).text.strip()
    print(f"judge | {decision}")

    return Best(best=candidates[chosen(decision, n) - 1], candidates=candidates, decision=decision)


async def write(context: Context, number: int, sampler: Sampler) -> str:
    """Write one candidate, and print it line by line as it comes, with its number in front."""
    generation = context.generate(sampler, stop=max_tokens(64) | stop_strings("\n"))
    line = ""
    async for chunk in generation:
        line += chunk.text
        if len(line) > LINE:
            complete, _, line = line.rpartition(" ")
            print(f"{number:5} | {complete}")
    print(f"{number:5} | {line}")
    return generation.result.text.strip()


def chosen(decision: str, n: int) -> int:
    """The first number in the decision that is a candidate's; the first candidate, if there is none."""
    numbers = (int(digits) for digits in re.findall(r"\d+", decision))
    return next((number for number in numbers if 1 <= number <= n), 1)
