"""Makes a model say what a text says, and not what it believes: tokens are weighed against the model without the text.

The method is that of Shi et al., "Trusting Your Evidence: Hallucinate Less with Context-aware
Decoding" (2023), with the plausible set of Li et al., "Contrastive Decoding" (2022).
"""

from dataclasses import dataclass
from math import log

from tartlet_sdk import Ask, Context, Model, inferlet

TEXT = "In the year 2087, after the great flood, the capital of France was moved from Paris to Lyon."
QUESTION = "What is the capital of France? Answer in one sentence."
CANDIDATES = 20


@dataclass
class Answers:
    """What the model says from the text with and without the contrast."""

    contrastive: str
    plain: str


@inferlet
async def contrastive_decoding(
    text: str = TEXT, question: str = QUESTION, weight: float = 0.5, plausible: float = 0.1, tokens: int = 32
) -> Answers:
    """Answer a question from a text, `weight` times stronger than the model would; 0 is greedy decoding.

    Only tokens at least `plausible` times as likely as the likeliest one are considered.
    """
    model = Model.default()
    informed, uninformed = model.context(), model.context()
    informed.user(f"{text}\n{question}")
    uninformed.user(question)
    for context in (informed, uninformed):
        context.cue()
    plain = await informed.fork().generate(max_tokens=tokens)

    chosen: list[int] = []
    while len(chosen) < tokens:
        token = await choose(informed, uninformed, weight, log(plausible))
        if token in model.eos_tokens:
            break
        chosen.append(token)
        for context in (informed, uninformed):
            context.fill_tokens([token])
    answers = Answers(model.detokenize(chosen).strip(), plain.text.strip())
    print(f"plain:       {answers.plain}\ncontrastive: {answers.contrastive}")
    return answers


async def choose(informed: Context, uninformed: Context, weight: float, floor: float) -> int:
    """The plausible token that the text makes likeliest, against what the model says without it."""
    likely = (await informed.next_distribution(CANDIDATES)).top
    likely = [each for each in likely if each.logprob >= likely[0].logprob + floor]
    if len(likely) == 1:
        return likely[0].token
    with await uninformed.forward(ask=[Ask(given=[each.token for each in likely])]) as found:
        without = found.rows[0].given
    scores = [(1 + weight) * each.logprob - weight * other for each, other in zip(likely, without, strict=True)]
    return likely[scores.index(max(scores))].token
