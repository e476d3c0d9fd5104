"""Answers multiple-choice questions without writing a word: the choice is the one that the model finds likeliest."""

from dataclasses import dataclass
from math import exp

from tartlet_sdk import Context, Model, inferlet

QUESTION = "What do bees make?"
CHOICES = ["honey", "milk", "paper", "steel"]


@dataclass
class Choice:
    """What the model would say."""

    choice: str
    chances: dict[str, float]
    unsure: float


@inferlet
async def choice_by_logprob(question: str = QUESTION, choices: list[str] = CHOICES) -> Choice:
    """Weigh the choices as answers to the question, and take the likeliest."""
    with Model.default().context() as context:
        context.user(f"{question} Answer with one of: {', '.join(choices)}.")
        context.cue()

        # All choices are branches of one forward pass after the same prompt. Nothing of it is kept.
        scores = await context.score(choices)

        # How open is the question? The entropy of what comes first, in nats: 0 if the model is certain.
        ahead = await context.next_distribution(top=3)
        await explain(context, choices[scores.index(max(scores))])

    weights = [exp(score - max(scores)) for score in scores]
    chances = {each: round(weight / sum(weights), 4) for each, weight in zip(choices, weights, strict=True)}
    return Choice(max(chances, key=chances.__getitem__), chances, round(ahead.entropy or 0.0, 3))


async def explain(context: Context, choice: str) -> None:
    """Print what each token of the choice adds: the first one decides, the rest often follows from it."""
    model = Model.default()
    for each in await context.logprobs(choice):
        print(f"{model.detokenize([each.token])!r}: {each.logprob:.2f}")
