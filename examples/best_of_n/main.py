"""Writes N candidates at once, all forked from one prompt, and lets the model choose among them by probability."""

import asyncio
from dataclasses import dataclass
from math import exp

from tartlet_sdk import Context, Model, Sampler, inferlet, max_tokens, stop_strings

TASK = "Write a catchy, on-brand email subject line for a 20% off Fall skincare sale."
LINE = 60  # characters


@dataclass
class Best:
    """What comes of it."""

    best: str
    candidates: list[str]
    probabilities: list[float]


@inferlet
async def best_of_n(n: int = 5, task: str = TASK) -> Best:
    """Write `n` candidates for a task and choose one."""
    model = Model.default()

    # One context holds the prompt. Its forks share the pages of the KV cache: the prompt is computed once, not n times.
    prompt = model.context()
    prompt.user(task)
    await prompt.flush()

    # All candidates are written at once, with slightly different samplers, so that they differ.
    samplers = (Sampler.top_p(0.7, 0.95), Sampler.top_k(40))
    candidates = await asyncio.gather(*(write(prompt.fork(), k + 1, samplers[k % 2]) for k in range(n)))

    # The order of a list sways who reads it. So there are n judges, also at once, and each candidate stands in each
    # place before one of them. They answer with one digit, and therefore compare nine candidates at the most.
    lists = [{k % n: candidates[k % n] for k in range(first, first + min(n, 9))} for first in range(n)]
    verdicts = await asyncio.gather(*(judge(model, prompt.fork(), listed) for listed in lists))

    votes = [sum(verdict.get(k, 0.0) for verdict in verdicts) for k in range(n)]
    probabilities = [vote / (sum(votes) or 1) for vote in votes]
    ranking = sorted(range(n), key=probabilities.__getitem__, reverse=True)
    print("judge | candidate " + ", ".join(f"{k + 1}: {probabilities[k]:.0%}" for k in ranking))
    return Best(candidates[ranking[0]], candidates, [round(each, 3) for each in probabilities])


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


async def judge(model: Model, context: Context, candidates: dict[int, str]) -> dict[int, float]:
    """Ask which candidate is the best: the probability with which the model says each one's number."""
    lines = "\n".join(f"{place}. {text}" for place, text in enumerate(candidates.values(), start=1))
    context.user(f"Which of these is the best? Reply with its number only.\n{lines}")
    context.cue()
    context.fill("The best is number ")
    answer = await context.generate(max_tokens=1, logprobs=20)
    likely = {model.detokenize([each.token]): exp(each.logprob) for each in answer.logprobs[0].top}
    return {k: likely.get(str(place), 0.0) for place, k in enumerate(candidates, start=1)}
