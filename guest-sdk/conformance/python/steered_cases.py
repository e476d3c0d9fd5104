"""Generations that a controller steers, which the host knows as `steered`: controller.py, in this language."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from context_cases import filled
from forward_cases import context_of
from generation_cases import GREEDY
from registry import case
from transcript import Transcript

from tartlet_sdk import Draft, max_tokens, variables, wit


def steer(text: str, do: str, **options: Any) -> Any:
    return filled(text).generate(controller="steered", config={"do": do}, **options)


def say_draft(t: Transcript, draft: Draft) -> None:
    for each in draft.sequences:
        t.say("sequence", each.text, each.tokens, each.finish_reason)


@case("controllers.control")
async def control(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "stop"))
    say_draft(t, await steer("abcdef", "go", stop=max_tokens(4)))
    await t.wait("unknown", filled("x").generate(controller="nobody"))
    await t.wait("an empty context", steer("", "go"))


@case("controllers.allow")
async def allow(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "allow"))


@case("controllers.force")
async def force(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "force"))


@case("controllers.splice")
async def splice(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "splice"))


@case("controllers.fork")
async def fork(t: Transcript) -> None:
    draft = await steer("abcdef", "fork", logprobs=1)
    say_draft(t, draft)
    t.say("log-probabilities", [[each.chosen.logprob for each in one.logprobs] for one in draft.sequences])


@case("controllers.prompt")
async def prompt(t: Transcript) -> None:
    context = filled("abcdef")
    draft = await context.generate(controller="steered", config={"do": "prompt"}, max_tokens=4)
    say_draft(t, draft)
    t.say("context", context.tokens)


@case("controllers.wait")
async def wait(t: Transcript) -> None:
    task = asyncio.create_task(steer("abcdef", "wait"))
    await asyncio.sleep(0.01)
    variables.set("go", "x")
    say_draft(t, await task)


@case("controllers.deadlock")
async def deadlock(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "wait-for-ever"))


@case("controllers.refused")
async def refused(t: Transcript) -> None:
    say_draft(t, await steer("abcdef", "refused"))


@case("controllers.failed")
async def failed(t: Transcript) -> None:
    for do in ("fail-at-start", "fail-later"):
        try:
            await steer("abcdef", do)
        except Exception as error:
            t.say(do, error.code, "the reason is seven é" in error.message)


@case("controllers.cancelled")
async def cancelled(t: Transcript) -> None:
    context = filled("endless")
    running = context.generate(controller="steered", config={"do": "go"}, chunk_interval=0)
    await anext(running)
    running.cancel()
    async for _ in running:
        pass
    t.say("finish", running.result.finish_reason)
    t.attempt("the context is free", context.truncate, 7)


def start(context: wit.contexts.Context, do: str, streaming: bool = False) -> wit.controllers.Controlled:
    sampling = wit.generation.Sampling(*GREEDY, [], None)
    stop = wit.generation.StopConditions(None, [], [], False)
    options = wit.generation.Options(streaming, 0, None, None, None, None)
    return wit.controllers.control(context, "steered", json.dumps({"do": do}), sampling, stop, options)


@case("controllers.controlled.ready")
def ready(t: Transcript) -> None:
    with context_of("abcdef") as context, start(context, "stop") as running:
        event = running.ready()
        t.say("the same at every call", running.ready() == event)
        t.say("ready", wit.events.poll([event], None) == [event])


@case("controllers.controlled.read")
def read(t: Transcript) -> None:
    with context_of("abcdef") as context, start(context, "stop") as running:
        wit.events.poll([running.ready()], None)
        found = running.read()
        t.say("ended", found.ended, len(found.chunks))
        chunk = found.chunks[0]
        t.say("chunk", chunk.sequence, chunk.text_backtrack, chunk.text, chunk.token_backtrack, chunk.tokens)
        t.say("finish", chunk.finish.reason.name.lower(), chunk.finish.stop_string)
        t.attempt("after the end", running.read)


@case("controllers.controlled.cancel")
def cancel(t: Transcript) -> None:
    with context_of("endless") as context, start(context, "go", streaming=True) as running:
        event = running.ready()
        wit.events.poll([event], None)
        running.cancel()
        reason = None
        while reason is None:
            wit.events.poll([event], None)
            for chunk in running.read().chunks:
                if chunk.finish is not None:
                    reason = chunk.finish.reason.name.lower()
        t.say("finish", reason)
        running.cancel()
        t.attempt("the context is free", context.truncate, 7)
