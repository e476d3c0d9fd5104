"""Beam search: of all ways to go on, the few likeliest are kept at each token, and the likeliest text comes out.

Each beam is a context. One token further, the survivors are forks of them, which share all pages but the last.
"""

import asyncio
from dataclasses import dataclass, field

from tartlet_sdk import Ask, Context, Model, inferlet

PROMPT = "The old lighthouse keeper looked out at the sea and"


@dataclass
class Beam:
    """One way to go on."""

    context: Context
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    is_complete: bool = False


@dataclass
class Found:
    """The texts that the search ends with, the likeliest first, and what greedy decoding would have written."""

    texts: list[str]
    logprobs: list[float]
    greedy: float


@inferlet
async def beam_search(prompt: str = PROMPT, width: int = 3, tokens: int = 12) -> Found:
    """Go on with a text by at most so many tokens, with `width` beams."""
    model = Model.default()
    start = model.context()
    start.fill(prompt)
    greedy = await greedy_logprob(start.fork(), tokens)

    beams = [Beam(start)]
    for _ in range(tokens):
        beams = await advance(beams, width, frozenset(model.eos_tokens))
        print(model.detokenize(beams[0].tokens))
        if all(beam.is_complete for beam in beams):
            break
    return Found([model.detokenize(each.tokens) for each in beams], [round(each.logprob, 3) for each in beams], greedy)


async def advance(beams: list[Beam], width: int, eos: frozenset[int]) -> list[Beam]:
    """Replace the beams by their `width` likeliest continuations, one token longer; complete ones stay in the race."""
    ahead = await asyncio.gather(*(likely(beam, width) for beam in beams))
    candidates = [
        (beam.logprob + logprob, beam, token)
        for beam, found in zip(beams, ahead, strict=True)
        for token, logprob in found
    ]
    candidates.sort(key=lambda candidate: candidate[0], reverse=True)
    kept = []
    for logprob, beam, token in candidates[:width]:
        if token is None:
            kept.append(beam)
            continue
        context = beam.context.fork()
        context.fill_tokens([token])
        kept.append(Beam(context, [*beam.tokens, token], logprob, token in eos))
    for beam in beams:
        if beam not in kept:
            beam.context.close()
    return kept


async def likely(beam: Beam, width: int) -> list[tuple[int | None, float]]:
    """The likeliest next tokens of a beam with their log-probabilities; none, at no cost, if it is complete."""
    if beam.is_complete:
        return [(None, 0.0)]
    with await beam.context.forward(ask=[Ask(top=width)]) as found:
        return [(each.token, each.logprob) for each in found.rows[0].top]


async def greedy_logprob(context: Context, tokens: int) -> float:
    """How likely the text is that always takes the likeliest token."""
    draft = await context.generate(max_tokens=tokens, logprobs=0)
    return round(sum(each.chosen.logprob for each in draft.logprobs), 3)
