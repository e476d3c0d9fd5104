from typing import Any

import pytest

pytestmark = pytest.mark.runner


def test_a_chat_is_saved_by_one_run_and_continued_by_another(guest: Any) -> None:
    """The tokens and the state of the chat come back in a later run: the open turn is closed by the next message."""
    guest("""
        context = Model.default().context()
        context.user("hello")
        await context.generate(max_tokens=2)
        await context.save("chat", ttl=60)
    """)
    text, listed, prefilled = guest("""
        context = await Context.open("chat")
        (saved,) = Context.saved()
        length = len(context)
        context.user("x")
        draft = await context.generate()
        Context.delete("chat")
        return (Model.default().detokenize(context.tokens),
                [saved.name, saved.model, saved.tokens == length, saved.bytes > 0, 0 < saved.expires_in <= 60],
                draft.usage.prompt_tokens - draft.usage.cached_tokens)
    """)

    assert text == (
        "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhe<|im_end|>\n"
        "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\nx<|im_end|>"
    )
    assert listed == ["chat", "fake", True, True, True]
    assert prefilled < 40


def test_errors_have_their_types(guest: Any) -> None:
    """A name that is taken, missing or no name, a time out of its range, and a context that is busy or closed."""
    names = guest("""
        context = Model.default().context()
        context.fill("abc")
        await context.save("taken")
        await context.save("taken", overwrite=True)
        going = asyncio.create_task(Model.default().context().fork().save("other"))
        busy = Model.default().context()
        busy.fill("x" * 50)
        generation = busy.generate(stop=ignore_eos())
        await generation.__anext__()
        closed = Model.default().context()
        closed.close()
        found = []
        for attempt in (
            lambda: context.save("taken"), lambda: Context.open("missing"), lambda: Context.open("no name"),
            lambda: context.save("no name"), lambda: context.save("a", ttl=0), lambda: context.save("a", ttl=-1),
            lambda: context.save("a", ttl="x"), lambda: context.save(7), lambda: busy.save("a"),
            lambda: closed.save("a"), lambda: asyncio.to_thread(Context.delete, "missing"),
        ):
            try:
                await attempt()
            except TartletError as error:
                found.append(type(error).__name__)
        generation.cancel()
        await going
        Context.delete("taken")
        Context.delete("other")
        return found
    """)

    assert names == [
        "AlreadyExists",
        "NotFound",
        *["InvalidArgument"] * 6,
        "Unavailable",
        "InvalidArgument",
        "NotFound",
    ]


def test_many_openings_at_once(guest: Any) -> None:
    """Openings wait together, each gives a context of its own, and one that is given up leaves nothing behind."""
    lengths, held = guest("""
        context = Model.default().context()
        context.fill("abc")
        await context.save("many")
        opened = await asyncio.gather(*(Context.open("many") for _ in range(20)))
        for number, each in enumerate(opened):
            each.fill("x" * number)
        lost = asyncio.create_task(Context.open("many"))
        await asyncio.sleep(0)
        lost.cancel()
        lengths = [len(each) for each in opened]
        Context.delete("many")
        return lengths, [saved.name for saved in Context.saved()]
    """)

    assert lengths == [3 + number for number in range(20)]
    assert held == []


def test_an_opening_by_hand(guest: Any) -> None:
    """The raw interface: an event, one context, and refusals with their codes."""
    refusals, length = guest("""
        model = models.Model.open(None)
        context = contexts.Context.create(model, None)
        context.fill("abcd")
        event = context.save("raw", contexts.SaveOptions(None, False))
        events.poll([event], None)
        events.outcome(event)
        opening = contexts.Context.open(model, "raw")
        early = refused(opening.take)[0]
        events.poll([opening.ready()], None)
        taken = opening.take()
        late = refused(opening.take)[0]
        missing = contexts.Context.open(model, "missing")
        events.poll([missing.ready()], None)
        contexts.delete_saved("raw")
        return [early, late, refused(missing.take)[0], refused(contexts.delete_saved, "raw")[0]], taken.length()
    """)

    assert refusals == ["UNAVAILABLE", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"]
    assert length == 4
