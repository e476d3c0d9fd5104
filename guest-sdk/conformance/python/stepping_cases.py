"""Stepping: the program has the say before each token. The fake engine's reply is the context's text."""

from __future__ import annotations

import asyncio

from context_cases import filled
from forward_cases import context_of
from generation_cases import GREEDY
from registry import case
from transcript import Transcript

from tartlet_sdk import Mask, Outcome, Splice, max_tokens, stop_strings, wit

raw = wit.stepping


def say_outcome(t: Transcript, label: str, outcome: Outcome | None) -> None:
    """All of it; of one that was refused, the error is told already."""
    if outcome is not None:
        t.say(label, outcome.tokens, outcome.text, outcome.sampled, outcome.backtrack, outcome.text_backtrack)
        if outcome.finish_reason is not None:
            t.say("finish", outcome.finish_reason)


def start(context: wit.contexts.Context) -> wit.stepping.Steps:
    """Steps of the contract's own."""
    sampling = wit.generation.Sampling(*GREEDY, [], None)
    stop = wit.generation.StopConditions(None, [], [], False)
    return raw.start(context, sampling, stop, raw.Options(None, None, None))


def plain(sample: bool = True) -> wit.stepping.Answer:
    return raw.Answer(sample, None, None, [], [], None, [])


@case("stepping.start")
async def start_steps(t: Transcript) -> None:
    context = filled("abc")
    async with context.steps(stop=max_tokens(2), logprobs=2) as steps:
        outcome = await steps.next()
        say_outcome(t, "first", outcome)
        logprobs = outcome.logprobs
        t.say("log-probabilities", logprobs.chosen.token, logprobs.chosen.logprob, len(logprobs.top))
        t.attempt("busy", context.fill, "x")
        outcome = await steps.next()
        say_outcome(t, "second", outcome)
        t.say("usage", outcome.usage.prompt_tokens, outcome.usage.generated_tokens)
        try:
            await steps.next()
        except Exception as error:
            t.say("after the end", error.code)
    t.say("context", context.tokens)
    with context_of("") as empty:
        t.attempt("an empty context", start, empty)


@case("stepping.steps.next")
async def next_step(t: Transcript) -> None:
    context = filled("abcdef")
    async with context.steps() as steps:
        say_outcome(t, "plain", await steps.next())
        say_outcome(t, "allowed", await steps.next(allow=[120, 121]))
        say_outcome(t, "in a mask", await steps.next(mask=Mask.all()))
        biased = await steps.next(bias={65: -1.5, 66: 2.0}, boost={Mask.of([67]): 0.5}, temperature=0.5)
        say_outcome(t, "biased", biased)
        t.say("text", steps.text, steps.tokens)
    t.say("context", context.tokens)


@case("stepping.refused")
async def refused(t: Transcript) -> None:
    context = filled("abcdef")
    async with context.steps() as steps:
        say_outcome(t, "first", await steps.next())
        await t.wait("too far back", steps.backtrack(8))
        say_outcome(t, "goes on", await steps.next())
        t.say("text", steps.text)


@case("stepping.splices")
async def splices(t: Transcript) -> None:
    context = filled("abcdef")
    async with context.steps() as steps:
        replace = Splice([88], backtrack=1, when_sampled=[97])
        say_outcome(t, "replaced", await steps.next(splices=[Splice([89], 1, [98]), replace]))
        say_outcome(t, "kept", await steps.next(splices=[replace]))
        say_outcome(t, "added", await steps.next(splices=[Splice([49, 50])]))
        say_outcome(t, "and one before it", await steps.next(splices=[Splice([90], backtrack=2)]))
        t.say("text", steps.text)
        say_outcome(t, "forced", await steps.force("é😀"))
        say_outcome(t, "forced tokens", await steps.force([226, 130]))
        say_outcome(t, "the rest of a character", await steps.force([172]))
        say_outcome(t, "taken back", await steps.backtrack(4, then="!"))
        say_outcome(t, "into the prompt", await steps.backtrack(len(steps.tokens) + 2, then="zz"))
        say_outcome(t, "nothing", await steps.backtrack(0))
        t.say("text", steps.text)
    t.say("context", context.tokens)


@case("stepping.stop-strings")
async def stop_in_steps(t: Transcript) -> None:
    context = filled("one two three")
    async with context.steps(stop=stop_strings("two")) as steps:
        while steps.finish_reason is None:
            await steps.next()
        t.say("text", steps.text, steps.finish_reason, len(steps.tokens))


@case("stepping.steps.answer")
def answer(t: Transcript) -> None:
    with context_of("abc") as context, start(context) as steps:
        t.attempt("first", steps.answer, plain())
        t.attempt("before its outcome", steps.answer, plain())
        wit.events.poll([steps.ready()], None)
        t.attempt("outcome", lambda: steps.outcome().sampled)
        everything = raw.Answer(
            True, [98, 99], None, [(98, 1.5)], [], 0.25, [raw.Splice([98], 1, [120]), raw.Splice([], 0, [])]
        )
        t.attempt("all of it", steps.answer, everything)
        wit.events.poll([steps.ready()], None)
        outcome = steps.outcome()
        t.say("outcome", outcome.backtrack, outcome.tokens, outcome.sampled, outcome.text)
        t.say("optional", outcome.log_probabilities is None, outcome.finish is None)


@case("stepping.steps.ready")
def ready(t: Transcript) -> None:
    with context_of("abc") as context, start(context) as steps:
        event = steps.ready()
        t.say("the same at every call", steps.ready() == event)
        t.say("nothing yet", wit.events.poll([event], 0))
        steps.answer(plain())
        t.say("ready", wit.events.poll([event], None) == [event])
        steps.outcome()
        t.say("read", wit.events.poll([event], 0))


@case("stepping.steps.outcome")
def outcome(t: Transcript) -> None:
    with context_of("abc") as context, start(context) as steps:
        t.attempt("before any answer", steps.outcome)
        steps.answer(plain())
        wit.events.poll([steps.ready()], None)
        t.attempt("once", lambda: steps.outcome().sampled)
        t.attempt("twice", steps.outcome)


@case("stepping.steps.fork")
async def fork(t: Transcript) -> None:
    context = filled("abcdef")
    async with context.steps() as steps:
        await steps.next()
        child = steps.fork(seed=18446744073709551615)
        say_outcome(t, "the child", await child.force("X"))
        say_outcome(t, "the parent", await steps.next())
        say_outcome(t, "the child again", await child.next())
        grandchild = child.fork()
        say_outcome(t, "its child", await grandchild.next())
        t.say("texts", steps.text, child.text, grandchild.text)
        child.stop()
        t.say("the child's context", child.context.tokens)
        t.attempt("is free", child.context.fill, "!")
        grandchild.stop()


@case("stepping.many-branches")
async def many_branches(t: Transcript) -> None:
    context = filled("0123456789")

    async def go(branch) -> str:
        while len(branch.tokens) < 6:
            await branch.next()
        branch.stop()
        return branch.text

    async with context.steps() as steps:
        await steps.next()
        branches = []
        for i in range(20):
            branch = steps.fork(seed=i)
            await branch.force(chr(65 + i))
            branches.append(branch)
        t.say("texts", await asyncio.gather(*(go(branch) for branch in branches)))


@case("stepping.steps.hold")
def hold(t: Transcript) -> None:
    with context_of("abc") as context, start(context) as steps:
        steps.hold()
        wit.events.poll([], 1_000_000)
        t.attempt("goes on", lambda: steps.next(plain()).sampled)
        steps.hold()
        steps.stop()
        steps.hold()
        t.say("held after the end", True)


@case("stepping.steps.stop")
def stop(t: Transcript) -> None:
    with context_of("abc") as context, start(context) as steps:
        steps.next(plain())
        t.attempt("busy", context.fill, "x")
        steps.stop()
        steps.stop()
        t.attempt("over", steps.answer, plain())
        t.attempt("free", context.fill, "x")
        t.say("length", context.length())


@case("stepping.late")
async def late(t: Transcript) -> None:
    context = filled("abcdef")
    async with context.steps() as steps:
        await steps.next()
        await asyncio.sleep(0.3)
        await t.wait("too late", steps.next())
    context = filled("abcdef")
    async with context.steps() as steps:
        await steps.next()
        await steps.wait(asyncio.sleep(0.3))
        say_outcome(t, "held", await steps.next())
