"""Trees of forks."""

from __future__ import annotations

import asyncio

from context_cases import filled
from registry import case
from transcript import Transcript

from tartlet_sdk import Context


@case("trees.binary")
async def binary(t: Transcript) -> None:
    async def grow(context: Context, depth: int) -> list[str]:
        if depth == 0:
            return [(await context.generate()).text]
        left, right = context.fork(), context.fork()
        left.fill("l")
        right.fill("r")
        texts = await asyncio.gather(grow(left, depth - 1), grow(right, depth - 1))
        return texts[0] + texts[1]

    t.say("leaves", await grow(filled("root:"), 5))


@case("trees.chain")
async def chain(t: Transcript) -> None:
    context = filled("0")
    for i in range(1, 100):
        child = context.fork()
        child.fill(str(i % 10))
        context.close()
        context = child
    draft = await context.generate(max_tokens=5)
    t.say("length", len(context), draft.text)


@case("trees.parents-go-first")
async def parents_go_first(t: Transcript) -> None:
    parent = filled("0123456789abcdef" * 4)
    await parent.flush()
    children = [parent.fork() for _ in range(8)]
    parent.close()
    children[0].truncate(3)
    children[1].fill("!")
    drafts = await asyncio.gather(*(child.generate(max_tokens=2) for child in children))
    t.say("cached", [draft.usage.cached_tokens for draft in drafts])
    t.say("lengths", [len(child) for child in children])
    t.say("shared", drafts[2].usage.pages, drafts[2].usage.shared_pages)


@case("trees.while-generating")
async def while_generating(t: Transcript) -> None:
    context = filled("endless")
    running = context.generate(chunk_interval=0)
    await anext(running)
    child = context.fork()
    t.say("has what is there", len(child) > 7, child.tokens[:7] == context.tokens[:7])
    running.cancel()
    async for _ in running:
        pass
    child.truncate(7)
    t.say("its own", child.tokens == context.tokens[:7])
