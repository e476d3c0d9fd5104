"""Beam search under a constraint, among the tokens that top-p leaves: the likeliest texts of a given form.

Greedy decoding under a constraint is often led astray: a first token that is likely by itself may leave only unlikely
texts. Each beam here has a context and a place in the constraint, and both are forked when it goes on in several ways.
"""

import asyncio
from dataclasses import dataclass, field
from math import exp

from tartlet_sdk import Ask, Constraint, Context, Mask, Matcher, Model, inferlet

QUESTION = "When did the first people walk on the moon? Reply with the date."
DATE = (
    r"(January|February|March|April|May|June|July|August|September|October|November|December) [1-9][0-9]?, 19[0-9]{2}"
)
LOOK_AT = 20
"""Tokens of a distribution that are looked at, before the whole mask is."""


@dataclass
class Beam:
    """One text so far."""

    context: Context
    matcher: Matcher
    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0


@dataclass
class Found:
    """The texts, the likeliest first."""

    texts: list[str]
    logprobs: list[float]


@inferlet
async def constrained_beam_search(
    question: str = QUESTION, pattern: str = DATE, width: int = 3, top_p: float = 0.9, max_steps: int = 64
) -> Found:
    """Answer a question with a text that matches a pattern, with `width` beams that go on at most `max_steps` times."""
    model = Model.default()
    context = model.context()
    context.user(question)
    context.cue()
    beams = [Beam(context, await Matcher.begin(Constraint.regex(pattern)))]

    for _ in range(max_steps):
        if all(beam.matcher.is_complete for beam in beams):
            break
        ahead = await asyncio.gather(*(likely(beam, width, top_p) for beam in beams))
        ways = [(beam, *way) for beam, found in zip(beams, ahead, strict=True) for way in found]
        ways.sort(key=lambda way: way[0].logprob + way[2], reverse=True)
        beams = await asyncio.gather(*(extend(*way) for way in ways[:width]))
        print(" | ".join(model.detokenize(beam.tokens) for beam in beams))
    return Found([model.detokenize(each.tokens) for each in beams], [round(each.logprob, 3) for each in beams])


async def likely(beam: Beam, width: int, top_p: float) -> list[tuple[list[int], float]]:
    """The ways to go on that the constraint allows, of these the likeliest, down to a share of `top_p` of them all."""
    if beam.matcher.is_complete:
        return [([], 0.0)]
    if forced := beam.matcher.forced:
        return [(forced, 0.0)]  # nothing else is allowed: under the constraint it is certain
    mask = beam.matcher.mask
    with await beam.context.forward(ask=[Ask(top=LOOK_AT)]) as found:
        allowed = [(each.token, each.logprob) for each in found.rows[0].top if each.token in mask]
    if not allowed:  # the model would say something else entirely
        allowed = [await best_allowed(beam.context, mask)]
    total, kept, share = sum(exp(logprob) for _, logprob in allowed), [], 0.0
    for token, logprob in allowed[:width]:
        if share >= top_p * total:
            break
        share += exp(logprob)
        kept.append(([token], logprob))
    return kept


async def best_allowed(context: Context, mask: Mask) -> tuple[int, float]:
    """The likeliest token of a mask, and its log-probability among all tokens."""
    with context.fork() as fork:
        draft = await fork.generate(mask=mask, max_tokens=1)
    with await context.forward(ask=[Ask(given=draft.tokens)]) as found:
        return draft.tokens[0], found.rows[0].given[0]


async def extend(beam: Beam, tokens: list[int], logprob: float) -> Beam:
    """Go on with a beam, in forks of its context and of its place."""
    if not tokens:
        return beam
    context, matcher = beam.context.fork(), await beam.matcher.fork()
    context.fill_tokens(tokens)
    await matcher.advance(tokens)
    return Beam(context, matcher, beam.tokens + tokens, beam.logprob + logprob)
