"""What a server is asked for: nothing, a text, or to wait."""

import asyncio

from tartlet_sdk import Model, ignore_eos, inferlet


@inferlet
async def service(way: str, tokens: int = 0, seconds: float = 0.0) -> int:
    """Do it, and return the number of tokens written.

    way: "nothing", "hello" (a line is printed), "whole" (a text that is awaited whole), "stream" (each token is
    printed), or "wait" (for so long, with a context of a few tokens, after it has printed that it is there).
    """
    if way in ("nothing", "hello"):
        if way == "hello":
            print("here")
        return 0
    context = Model.default().context()
    context.fill("The sea was calm that morning, and")
    if way == "wait":
        await context.flush()
        print("here")
        await asyncio.sleep(seconds)
        return 0
    if way == "whole":
        return len((await context.generate(max_tokens=tokens, stop=ignore_eos())).tokens)
    count = 0
    async for piece in context.generate(max_tokens=tokens, stop=ignore_eos(), chunk_interval=0):
        print(piece.text, end="")
        count += len(piece.tokens)
    return count
