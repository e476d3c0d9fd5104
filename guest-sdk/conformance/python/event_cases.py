"""Waiting: the contract's own calls, and what the SDK makes of them."""

from __future__ import annotations

import asyncio

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Context, Model, variables, wit

events = wit.events


@case("events.poll")
def poll(t: Transcript) -> None:
    first, second, late = events.timer(0), events.timer(0), events.timer(3_600_000_000_000)
    events.poll([first], None)
    events.poll([second], None)
    t.say("in the order given", events.poll([second, late, first], None) == [second, first])
    t.say("one twice", events.poll([first, first], None) == [first, first])
    t.say("still ready", events.poll([first], 0) == [first])
    t.say("only a look", events.poll([late], 0))
    t.say("the time passes", events.poll([late], 1_000_000))
    t.say("nothing, for a while", events.poll([], 1_000_000))
    t.say("ready with a timeout of 2^64 - 1", events.poll([first], 18446744073709551615) == [first])


@case("events.timer")
def timer(t: Transcript) -> None:
    soon, never = events.timer(1_000_000), events.timer(18446744073709551615)
    t.say("other ids", soon != never)
    t.say("the soon one", events.poll([never, soon], None) == [soon])
    t.attempt("outcome", events.outcome, soon)


@case("events.outcome")
def outcome(t: Transcript) -> None:
    ready = events.timer(0)
    events.poll([ready], None)
    t.attempt("ready", events.outcome, ready)
    with wit.models.Model.open(None) as model, wit.contexts.Context.create(model, None) as context:
        context.fill("x")
        failing = context.save("taken", wit.contexts.SaveOptions(None, False))
        events.poll([failing], None)
        t.attempt("ok", events.outcome, failing)
        failing = context.save("taken", wit.contexts.SaveOptions(None, False))
        events.poll([failing], None)
        t.attempt("failed", events.outcome, failing)


@case("events.drop-event")
def drop_event(t: Transcript) -> None:
    for _ in range(5000):  # more than a run may hold
        events.drop_event(events.timer(3_600_000_000_000))
    t.say("dropped", 5000)


@case("waiting.gather")
async def gather(t: Transcript) -> None:
    contexts = [filled(f"number {i}") for i in range(100)]
    drafts = await asyncio.gather(*(context.generate() for context in contexts))
    t.say("texts", [draft.text for draft in drafts])


@case("waiting.many-timers")
async def many_timers(t: Transcript) -> None:
    done = []

    async def one(i: int) -> None:
        await asyncio.sleep(0.001 * (i % 3))
        done.append(i)

    await asyncio.gather(*(one(i) for i in range(600)))
    t.say("done", len(done), sum(done))


@case("waiting.first-of-two")
async def first_of_two(t: Transcript) -> None:
    short, long = filled("short"), filled("endless")
    tasks = [asyncio.create_task(each.generate()) for each in (long, short)]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    t.say("which", [tasks.index(each) for each in done])
    t.say("text", done.pop().result().text)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    t.attempt("the other's context is free", long.truncate, 3)


@case("waiting.timeout")
async def timeout(t: Transcript) -> None:
    context = filled("endless")
    try:
        await asyncio.wait_for(context.generate(), 0.03)
    except TimeoutError:
        t.say("timed out", True)
    t.attempt("the context is free", context.truncate, 7)
    t.say("tokens", context.tokens)


@case("waiting.timeout-of-nothing")
async def timeout_of_nothing(t: Transcript) -> None:
    try:
        await asyncio.wait_for(variables.wait("never"), 0.02)
    except TimeoutError:
        t.say("timed out", True)
    try:
        await asyncio.wait_for(variables.wait("never"), 0)
    except TimeoutError:
        t.say("at once", True)


@case("waiting.error-of-one")
async def error_of_one(t: Transcript) -> None:
    good, bad = filled("good"), Model.default().context()
    bad.user("fail")
    done = await asyncio.gather(good.generate(), t.wait("the bad one", bad.generate()))
    t.say("the good one", done[0].text)


@case("waiting.deadlock")
async def deadlock(t: Transcript) -> None:
    await t.wait("nobody is left", variables.wait("never"))
    first = t.wait("the first", variables.wait("this"))
    await asyncio.gather(first, t.wait("the second", variables.wait("that")))
    t.say("goes on", variables.set("this", "x"))


@case("waiting.cancelled-before-it-began")
async def cancelled_early(t: Transcript) -> None:
    context = filled("endless")
    generation = context.generate()
    generation.cancel()
    draft = await generation
    t.say("draft", draft.finish_reason, len(draft.tokens) < 1500)


@case("waiting.dropped")
async def dropped(t: Transcript) -> None:
    context = filled("endless")
    generation = context.generate()
    await anext(generation)
    del generation  # nobody refers to it: it ends
    t.attempt("the context is free", context.truncate, 7)
    contexts: list[Context] = [context.fork() for _ in range(200)]
    await asyncio.gather(*(each.flush() for each in contexts))
    t.say("forks", len(contexts))
