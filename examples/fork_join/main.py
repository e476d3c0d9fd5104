"""Forks that wait for each other: two write, each at its own pace, and the third joins what they have written."""

import asyncio

from tartlet_sdk import Context, Model, Sampler, inferlet, max_tokens, stop_strings, variables

SENTENCE = max_tokens(40) | stop_strings("\n")


async def write(context: Context, name: str, task: str) -> None:
    """Write one sentence into a variable, of which the client hears at once."""
    context.user(task)
    draft = await context.generate(Sampler.top_p(0.7, 0.95), stop=SENTENCE)
    variables.set(name, draft.text.strip())


async def join(context: Context, *names: str) -> str:
    """Wait for the others' variables, and make one sentence of them."""
    sentences = [str(await variables.wait(name)) for name in names]
    context.user("Join these into one sentence:\n" + "\n".join(sentences))
    draft = await context.generate(Sampler.greedy(), stop=SENTENCE)
    return draft.text.strip()


@inferlet
async def fork_join(thing: str = "a cat") -> str:
    """Describe a thing in two forks at once, and join the descriptions in a third."""
    context = Model.default().context()
    context.system("You answer with one short sentence.")
    _, _, joined = await asyncio.gather(
        write(context.fork(), "looks", f"Say what {thing} looks like."),
        write(context.fork(), "sounds", f"Say what {thing} sounds like."),
        join(context.fork(), "looks", "sounds"),
    )
    return joined
