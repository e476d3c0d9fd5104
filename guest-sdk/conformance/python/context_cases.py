"""Contexts, saved ones too."""

from __future__ import annotations

from registry import case
from transcript import Transcript

from tartlet_sdk import Context, Model, wit


def filled(text: str) -> Context:
    """A context with a text."""
    context = Model.default().context()
    context.fill(text)
    return context


@case("contexts.context.create")
def create(t: Transcript) -> None:
    model = Model.default()
    t.say("empty", model.context().tokens)
    t.say("with an adapter", model.context(adapter="polite").tokens)
    t.attempt("unknown adapter", model.context, adapter="rude")
    t.attempt("no name", model.context, adapter="")


@case("contexts.context.fill")
def fill(t: Transcript) -> None:
    context = Model.default().context()
    context.fill("")
    t.say("nothing", len(context))
    context.fill("Aé")
    context.fill("<|im_end|>")
    t.say("filled", context.tokens)
    t.attempt("too long", context.fill, "x" * 2045)
    t.attempt("as long as can be", context.fill, "x" * 2044)
    t.say("length", len(context))


@case("contexts.context.fill-tokens")
def fill_tokens(t: Transcript) -> None:
    context = Model.default().context()
    t.attempt("none", context.fill_tokens, [])
    t.attempt("some", context.fill_tokens, [0, 257, 65])
    t.attempt("out of range", context.fill_tokens, [65, 258])
    t.attempt("largest", context.fill_tokens, [4294967295])
    t.say("filled", context.tokens)


@case("contexts.context.fill-message")
def fill_message(t: Transcript) -> None:
    model = Model.default()
    context = model.context()
    context.system("Be <|im_end|> brief.")
    context.user("Hi")
    context.assistant("Hello")
    context.tool("42")
    t.say("special tokens stay text", context.tokens[:16])
    t.say("text", model.detokenize(context.tokens))
    t.attempt("system not first", context.system, "Be long.")
    t.say("nothing was added", len(context))


@case("contexts.context.cue")
def cue(t: Transcript) -> None:
    model = Model.default()
    context = model.context()
    context.user("Hi")
    context.cue()
    t.say("text", model.detokenize(context.tokens))
    context.fill("Well")
    context.user("What?")
    t.say("the turn is closed", model.detokenize(context.tokens))


@case("contexts.context.flush")
async def flush(t: Transcript) -> None:
    context = filled("0123456789abcdef0123")
    await t.wait("flushed", context.flush())
    await t.wait("again", context.flush())
    usage = (await context.generate(max_tokens=1)).usage
    t.say("cached", usage.prompt_tokens, usage.cached_tokens)
    await t.wait("an empty one", Model.default().context().flush())


@case("contexts.context.fork")
async def fork(t: Transcript) -> None:
    context = filled("0123456789abcdef0123")
    child = context.fork()
    child.fill("x")
    context.fill("yz")
    t.say("lengths", len(context), len(child))
    t.say("ends", context.tokens[-2:], child.tokens[-2:])
    usage = (await child.generate(max_tokens=1)).usage
    t.say("cached and shared", usage.cached_tokens, usage.pages, usage.shared_pages)


@case("contexts.context.length")
def length(t: Transcript) -> None:
    context = Model.default().context()
    t.say("empty", len(context))
    context.fill_tokens([1, 2, 3])
    t.say("three", len(context))


@case("contexts.context.positions")
async def positions(t: Transcript) -> None:
    context = filled("0123456789")
    t.say("before", context.positions)
    await context.evict(2, 5)
    t.say("after", context.positions, len(context))


@case("contexts.context.tokens")
def tokens(t: Transcript) -> None:
    context = Model.default().context()
    t.say("empty", context.tokens)
    context.fill_tokens([257, 0, 257])
    t.say("three", context.tokens)


@case("contexts.context.truncate")
def truncate(t: Transcript) -> None:
    context = filled("0123456789")
    t.attempt("to four", context.truncate, 4)
    t.say("tokens", context.tokens)
    t.attempt("to as many", context.truncate, 4)
    t.attempt("to more", context.truncate, 5)
    t.attempt("to far more", context.truncate, 4294967295)
    t.attempt("to none", context.truncate, 0)
    t.say("length", len(context))


@case("contexts.context.evict")
async def evict(t: Transcript) -> None:
    context = filled("0123456789")
    await t.wait("the middle", context.evict(2, 5))
    t.say("tokens", context.tokens)
    await t.wait("the last one", context.evict(6, 7))
    await t.wait("out of order", context.evict(3, 1))
    await t.wait("too many", context.evict(0, 4294967295))
    await t.wait("none", context.evict(1, 1))
    t.say("length", len(context), context.positions)


@case("contexts.context.save")
async def save(t: Transcript) -> None:
    context = filled("Remember me.")
    await t.wait("saved", context.save("a/b:c-d_e.f"))
    await t.wait("taken", context.save("a/b:c-d_e.f"))
    await t.wait("overwritten", context.save("a/b:c-d_e.f", overwrite=True))
    await t.wait("kept for a while", context.save("later", ttl=3600))
    await t.wait("no name", context.save(""))
    await t.wait("bad name", context.save("naïve"))
    await t.wait("bad beginning", context.save("-x"))
    await t.wait("long name", context.save("n" * 129))
    t.say("names", [each.name for each in Context.saved()])


@case("contexts.context.open")
async def open_saved(t: Transcript) -> None:
    model = Model.default()
    context = model.context()
    context.user("Remember me.")
    await context.save("mine")
    context.user("And this.")
    opened = await Context.open("mine")
    t.say("text", model.detokenize(opened.tokens))
    draft = await opened.generate()
    t.say("goes on", draft.text, draft.usage.cached_tokens)
    await t.wait("unknown", Context.open("yours"))
    await t.wait("bad name", Context.open("not a name"))


@case("contexts.opening.ready")
async def opening_ready(t: Transcript) -> None:
    await filled("Remember me.").save("mine")
    with wit.models.Model.open(None) as model, wit.contexts.Context.open(model, "mine") as opening:
        event = opening.ready()
        t.say("the same at every call", opening.ready() == event)
        t.say("ready", wit.events.poll([event], None) == [event])
        t.say("still ready", wit.events.poll([event], 0) == [event])


@case("contexts.opening.take")
async def opening_take(t: Transcript) -> None:
    await filled("Remember me.").save("mine")
    with wit.models.Model.open(None) as model, wit.contexts.Context.open(model, "mine") as opening:
        t.attempt("too early", opening.take)
        wit.events.poll([opening.ready()], None)
        with opening.take() as context:
            t.say("length", context.length())
        t.attempt("twice", opening.take)


@case("contexts.list-saved")
async def list_saved(t: Transcript) -> None:
    t.say("none", len(Context.saved()))
    await filled("Remember me.").save("b")
    polite = Model.default().context(adapter="polite")
    polite.fill("Please.")
    await polite.save("a", ttl=3600)
    for each in Context.saved():
        t.say("saved", each.name, each.model, each.adapter, each.tokens, each.bytes)
        t.say("for ever", each.expires_in is None)
    left = Context.saved()[0].expires_in or 0
    t.say("about an hour is left", 3000 < left <= 3600)


@case("contexts.delete-saved")
async def delete_saved(t: Transcript) -> None:
    await filled("Remember me.").save("mine")
    opened = await Context.open("mine")
    t.attempt("deleted", Context.delete, "mine")
    t.attempt("again", Context.delete, "mine")
    t.attempt("bad name", Context.delete, "")
    t.say("opened before", len(opened))
    t.say("left", len(Context.saved()))


@case("contexts.busy")
async def busy(t: Transcript) -> None:
    context = filled("endless")
    generation = context.generate()
    await anext(generation)
    t.attempt("fill", context.fill, "x")
    t.attempt("truncate", context.truncate, 1)
    await t.wait("flush", context.flush())
    await t.wait("another generation", context.generate())
    child = context.fork()
    t.say("a fork has what is there", child.tokens[:8])
    t.attempt("and is free", child.fill, "x")
    generation.cancel()
    async for _ in generation:
        pass
    t.say("finish", generation.result.finish_reason)
    t.attempt("free again", context.fill, "x")


@case("contexts.kv-exhausted")
async def kv_exhausted(t: Transcript) -> None:
    contexts = []
    for name in ("first", "second", "third"):
        context = filled(name[0] * 2000)
        contexts.append(context)
        await t.wait(name, context.flush())
    contexts[0].close()
    await t.wait("with room", contexts[2].flush())
