"""Multiple choice by boosted logits: the model's own chances, and those when some answers are favoured."""

import asyncio
import math

from tartlet_sdk import Context, Mask, Model, Sampler, inferlet

QUESTION = "Which of these would you take on a picnic?"
ANSWERS = ["a lemon tart", "a rye loaf", "a bucket of ice", "a wedding cake"]


async def chances(context: Context, tokens: list[int], boosts: list[float]) -> list[float]:
    """How likely each token is to come next, if there were no others and these boosts were added to their logits."""
    sampler = Sampler.greedy().with_(logit_bias=dict(zip(tokens, boosts, strict=True)))
    with context.fork() as fork:
        draft = await fork.generate(sampler, mask=Mask.of(tokens), logprobs=len(tokens), max_tokens=1)
    known = {entry.token: math.exp(entry.logprob) for entry in draft.logprobs[0].top}
    return [known.get(token, 0.0) for token in tokens]


@inferlet
async def boosted_choice(
    question: str = QUESTION, answers: list[str] = ANSWERS, boosts: list[float] | None = None
) -> dict[str, str | list[float]]:
    """Choose one of up to 20 answers. A boost of 1 makes an answer about e times as likely against the others."""
    model = Model.default()
    letters = [chr(ord("A") + number) for number in range(len(answers))]
    tokens = [model.tokenize(letter)[0] for letter in letters]
    given = boosts or [0.0, 1.5, *[0.0] * (len(answers) - 2)]
    with model.context() as context:
        context.system("You answer with one letter.")
        context.user("\n".join([question, *(f"{a}) {b}" for a, b in zip(letters, answers, strict=True))]))
        context.cue()
        own, boosted = await asyncio.gather(
            chances(context, tokens, [0.0] * len(tokens)), chances(context, tokens, given)
        )
    for answer, before, after in zip(answers, own, boosted, strict=True):
        print(f"{before:5.0%} -> {after:4.0%}  {answer}")
    best = answers[boosted.index(max(boosted))]
    return {"answer": best, "own": [round(each, 3) for each in own], "boosted": [round(each, 3) for each in boosted]}
