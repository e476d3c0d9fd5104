"""Forward passes. The fake engine thinks that token n + 1 follows token n, with a probability of a half."""

from __future__ import annotations

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Ask, Pass, Sampler, wit

raw = wit.forward


def say_pass(t: Transcript, found: Pass) -> None:
    t.say("log-probabilities", found.logprobs)
    for row in found.rows:
        sampled = row.sampled
        t.say("sampled", *((None,) if sampled is None else (sampled.token, sampled.logprob)))
        t.say("top", [each.token for each in row.top], [each.logprob for each in row.top])
        t.say("given", row.given)
        t.say("entropy", row.entropy)
        t.say("logits", len(row.logits), row.logits[:2])


@case("forward.forward")
async def forward(t: Transcript) -> None:
    context = filled("A")
    asked = [
        Ask(),
        Ask(-1, sample=Sampler.greedy(), sample_index=4294967295, top=2, given=[66, 0, 257], entropy=True, logits=True),
        Ask(1, top=1),
    ]
    with await context.forward([66, 70], ask=asked, logprobs=True) as found:
        say_pass(t, found)
    with await context.forward([67]) as found:
        t.say("nothing asked", len(found.logprobs), len(found.rows))
    t.say("context", context.tokens)


@case("forward.limits")
async def limits(t: Transcript) -> None:
    context = filled("A")
    await t.wait("out of range", context.forward([4294967295]))
    await t.wait("a row that is not there", context.forward([66], ask=[Ask(1)]))
    await t.wait("a parent that comes later", context.forward([66, 67], parents=[1, -1]))
    await t.wait("too few parents", context.forward([66, 67], parents=[-1]))
    await t.wait("too large a tree", context.forward([66] * 257, parents=[-1] * 257))
    await t.wait("too many asked", context.forward([66], ask=[Ask()] * 513))
    await t.wait("too many samples", context.forward([66], ask=[Ask(sample=Sampler.greedy())] * 65))
    await t.wait("too many rows of logits", context.forward([66], ask=[Ask(logits=True)] * 9))
    await t.wait("too many tokens", context.forward([66] * 2048))
    await t.wait("a position that is taken", context.forward([66], positions=[0]))
    await t.wait("an empty context", filled("").forward([66]))
    t.say("the context is free", len(context))


@case("forward.tree")
async def tree(t: Transcript) -> None:
    context = filled("A")
    parents = [-1, -1, 0, 1, 1]
    asked = [Ask(row, top=1) for row in range(5)]
    found = await context.forward([66, 80, 67, 81, 90], parents=parents, ask=asked, logprobs=True)
    t.say("log-probabilities", found.logprobs)
    t.say("most likely", [row.top[0].token for row in found.rows])
    t.attempt("not a path", found.commit, [0, 3])
    t.attempt("a path", found.commit, [1, 3])
    t.say("context", context.tokens)
    with await context.forward([90, 91], positions=[10, 20]) as found:
        t.say("with gaps", len(found.rows))


def start(context: wit.contexts.Context, tokens: list[int]) -> wit.forward.Pass:
    """A pass of the contract's own."""
    return raw.forward(context, tokens, raw.Options(None, None, True, []))


def context_of(text: str) -> wit.contexts.Context:
    with wit.models.Model.open(None) as model:
        context = wit.contexts.Context.create(model, None)
    context.fill(text)
    return context


@case("forward.pass.ready")
def ready(t: Transcript) -> None:
    with context_of("A") as context, start(context, [66]) as started:
        event = started.ready()
        t.say("the same at every call", started.ready() == event)
        t.say("ready", wit.events.poll([event], None) == [event])


@case("forward.pass.read")
def read(t: Transcript) -> None:
    with context_of("A") as context, start(context, [66]) as started:
        t.attempt("too early", started.read)
        wit.events.poll([started.ready()], None)
        found = started.read()
        t.say("found", list(found.log_probabilities), len(found.rows))
        t.attempt("twice", started.read)


@case("forward.pass.commit")
async def commit(t: Transcript) -> None:
    context = filled("A")
    found = await context.forward([66, 67, 68])
    t.attempt("not from the beginning", found.commit, [1])
    t.attempt("a row that is not there", found.commit, [3])
    t.attempt("two of them", found.commit, [0, 1])
    t.say("context", context.tokens)
    found = await context.forward([69])
    t.attempt("nothing", found.commit, [])
    t.say("context", context.tokens)
    with context_of("A") as raw_context, start(raw_context, [66]) as started:
        t.attempt("too early", started.commit, [1])
        wit.events.poll([started.ready()], None)
        t.attempt("all", started.commit, [1])
        t.attempt("twice", started.commit, [1])
        t.say("length", raw_context.length())


@case("forward.pass.discard")
async def discard(t: Transcript) -> None:
    context = filled("A")
    found = await context.forward([66])
    t.attempt("busy", context.fill, "x")
    t.say("a fork has none of it", context.fork().tokens)
    found.discard()
    found.discard()
    t.attempt("free", context.fill, "x")
    t.say("context", context.tokens)


@case("forward.many")
def many(t: Transcript) -> None:
    contexts = [context_of("A") for _ in range(65)]
    passes = [start(context, [66]) for context in contexts[:64]]
    t.attempt("one more", start, contexts[64], [66])
    for each in passes:
        each.__exit__(None, None, None)
    t.attempt("with room", start, contexts[64], [66])


@case("forward.scoring")
async def scoring(t: Transcript) -> None:
    context = filled("A")
    t.say("scores", await context.score(["BCD", "BX", "Q"]))
    t.say("one by one", [each.logprob for each in await context.logprobs("BCX")])
    ahead = await context.next_distribution(top=2)
    t.say("ahead", [each.token for each in ahead.top], ahead.entropy)
    t.say("context", context.tokens)


@case("forward.verify")
async def verify(t: Transcript) -> None:
    context = filled("A")
    t.say("right for a while", await context.verify([66, 67, 90, 91]))
    t.say("context", context.tokens)
    t.say("wrong at once", await context.verify([1]))
    await t.wait("too long", context.verify([66] * 64))
