"""On models that compute: numbers differ between processors, so others are held to what this program tells."""

from __future__ import annotations

import asyncio

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Ask, Constraint, Model, Sampler, Speculation, Splice, max_tokens

PROMPT = "The cat sat on the mat. The cat sat on the"


@case("model.greedy")
async def greedy(t: Transcript) -> None:
    draft = await filled(PROMPT).generate(max_tokens=24, logprobs=2)
    t.say("tokens", draft.tokens, draft.text)
    for each in draft.logprobs[:4]:
        t.say("log-probabilities", each.chosen.logprob, [other.token for other in each.top])


@case("model.samplers")
async def samplers(t: Transcript) -> None:
    context = filled(PROMPT)
    most = 18446744073709551615
    drafts = await asyncio.gather(
        *(
            context.fork().generate(sampler, max_tokens=16)
            for sampler in (
                Sampler.temperature(1.3, seed=0),
                Sampler.top_p(0.8, 0.95, seed=most),
                Sampler.top_k(40, 0.7, seed=9007199254740993),
                Sampler.min_p(0.05, 1.1, seed=3),
                Sampler.temperature(1.0, seed=5, repetition_penalty=1.3, presence_penalty=0.4, frequency_penalty=0.1),
                Sampler.temperature(0.0, logit_bias={5: 100.0}),
                Sampler.temperature(1.0),
            )
        )
    )
    for draft in drafts:
        t.say("tokens", draft.tokens)


@case("model.forward")
async def forward(t: Transcript) -> None:
    context = filled(PROMPT)
    model = Model.default()
    a, b, c = model.tokenize("abc")[:1], model.tokenize(" dog")[:1], model.tokenize(" roof")[:1]
    asked = [Ask(row, top=3, given=b, entropy=True) for row in (-1, 0, 1, 2)]
    with await context.forward(a + b + c, parents=[-1, -1, 1], ask=asked, logprobs=True) as found:
        t.say("log-probabilities", found.logprobs)
        for row in found.rows:
            t.say("row", [each.token for each in row.top], [each.logprob for each in row.top], row.given, row.entropy)
        found.commit([1, 2])
    t.say("length", len(context))
    with await context.forward(a, ask=[Ask(logits=True), Ask(0, sample=Sampler.temperature(1.0, seed=11))]) as found:
        logits = found.rows[0].logits
        t.say("logits", len(logits), logits[:3], logits[-3:])
        t.say("sampled", found.rows[1].sampled.token, found.rows[1].sampled.logprob)
    t.say("scores", await context.score([" the cat", " a dog", " the cow"]))


@case("model.stepping")
async def stepping(t: Transcript) -> None:
    context = filled(PROMPT)
    async with context.steps(Sampler.temperature(0.9, seed=17), stop=max_tokens(20), regex="[ -~]{1,60}") as steps:
        for _ in range(5):
            await steps.next()
        child = steps.fork(seed=23)
        await child.next(splices=[Splice(Model.default().tokenize(" and"), backtrack=1)])
        await child.next(bias={10: 3.0})
        await steps.backtrack(2)
        await steps.next(temperature=0.0)
        t.say("tokens", steps.tokens, child.tokens)
        child.stop()


@case("model.constraints")
async def constraints(t: Transcript) -> None:
    context = filled(PROMPT)
    schema = (
        '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["n"]}'
    )
    either = Constraint.regex("[a-m]{2,5}") & Constraint.regex("[c-z]+") | Constraint.choices("zzz")
    drafts = await asyncio.gather(
        context.fork().generate(json_schema=schema, max_tokens=40),
        context.fork().generate(constraint=either, max_tokens=8),
        context.fork().generate(Sampler.temperature(1.0, seed=2), choices=["one", "two", "three"]),
    )
    for draft in drafts:
        t.say("draft", draft.text, draft.tokens, draft.finish_reason, draft.usage.forced_tokens)


@case("model.speculation")
async def speculation(t: Transcript) -> None:
    context = filled(PROMPT)
    plain = await context.fork().generate(max_tokens=16)
    guessed = await context.fork().generate(max_tokens=16, speculation=Speculation(expected=PROMPT))
    t.say("the same", guessed.tokens == plain.tokens)
    t.say("tokens", guessed.tokens)


@case("model.eviction")
async def eviction(t: Transcript) -> None:
    context = filled(PROMPT)
    await context.evict(2, 5)
    draft = await context.generate(max_tokens=12)
    t.say("tokens", draft.tokens, len(context), context.positions)
    await context.save("evicted", overwrite=True)
    opened = await type(context).open("evicted")
    again, opened_again = await asyncio.gather(context.generate(max_tokens=6), opened.generate(max_tokens=6))
    t.say("goes on", again.tokens)
    t.say("the same", again.tokens == opened_again.tokens)
