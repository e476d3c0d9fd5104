from typing import Any

import pytest

pytestmark = pytest.mark.runner


def test_what_is_filled_is_there(guest: Any) -> None:
    """Text, tokens and messages append their tokens, in order, at once."""
    tokens, length, text = guest("""
        model = Model.default()
        context = model.context()
        context.fill("ab")
        context.fill_tokens([99, 100])
        context.user("hi")
        return context.tokens, len(context), model.detokenize(context.tokens)
    """)

    assert length == len(tokens)
    assert text == "abcd<|im_start|>user\nhi<|im_end|>\n"


def test_a_generation_opens_the_turn_and_the_next_message_closes_it(guest: Any) -> None:
    """The cue comes by itself after a message; the turn is closed by what is missing, here the newline after eos."""
    text = guest("""
        model = Model.default()
        context = model.context()
        context.system("s")
        context.user("hi")
        await context.generate()
        context.user("more")
        return model.detokenize(context.tokens)
    """)

    assert text == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
        "<|im_start|>assistant\nhi<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n"
    )


def test_a_turn_that_was_cut_short_is_closed(guest: Any) -> None:
    """After a generation that ended without eos, the next message writes the eos first."""
    text = guest("""
        model = Model.default()
        context = model.context()
        context.user("hello")
        await context.generate(max_tokens=2)
        context.user("x")
        return model.detokenize(context.tokens)
    """)

    assert "<|im_start|>assistant\nhe<|im_end|>\n<|im_start|>user\nx<|im_end|>\n" in text


def test_an_explicit_cue_is_not_repeated(guest: Any) -> None:
    """`cue` twice, or before a generation, begins one turn; text after a message begins none."""
    cued, plain = guest("""
        model = Model.default()
        cued, plain = model.context(), model.context()
        cued.user("hi")
        cued.cue()
        cued.cue()
        cued.fill("so ")
        await cued.generate()
        plain.user("hi")
        plain.fill("and")
        await plain.generate(max_tokens=1)
        return model.detokenize(cued.tokens), model.detokenize(plain.tokens)
    """)

    assert cued == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nso hi<|im_end|>"
    assert plain == "<|im_start|>user\nhi<|im_end|>\nandh"


def test_truncating_restores_the_chat(guest: Any) -> None:
    """After a cut before the answer, the chat goes on as if the answer had never been."""
    text = guest("""
        model = Model.default()
        context = model.context()
        context.user("hi")
        before = len(context)
        await context.generate()
        context.truncate(before)
        await context.generate(max_tokens=1)
        return model.detokenize(context.tokens)
    """)

    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nh"


def test_a_fork_is_independent(guest: Any) -> None:
    """What parent and fork append does not concern the other, and each continues its own chat."""
    parent, fork = guest("""
        model = Model.default()
        parent = model.context()
        parent.user("hi")
        fork = parent.fork()
        fork.user("there")
        await asyncio.gather(parent.generate(), fork.generate())
        return model.detokenize(parent.tokens), model.detokenize(fork.tokens)
    """)

    assert parent == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhi<|im_end|>"
    assert fork.endswith("<|im_start|>user\nthere<|im_end|>\n<|im_start|>assistant\nthere<|im_end|>")


def test_a_busy_context_can_be_read_and_forked_only(guest: Any) -> None:
    """While a generation runs, everything else is refused as unavailable, and a fork starts after what is there."""
    refusals, lengths = guest("""
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill("x" * 100)
        going = generation.generate(context, SAMPLING, generation.StopConditions(None, [], [], True),
                                    options(streaming=True))
        refusals = [refused(call, *args)[0] for call, *args in (
            (context.fill, "a"), (context.fill_tokens, [1]), (context.fill_message, contexts.Role.USER, "a"),
            (context.cue,), (context.flush,), (context.truncate, 0),
            (generation.generate, context, SAMPLING, STOP, options()))]
        events.poll([going.ready()], None)
        fork = context.fork()
        going.cancel()
        return refusals, [len(fork.tokens()) > 100, fork.length() == len(fork.tokens())]
    """)

    assert refusals == ["UNAVAILABLE"] * 7
    assert lengths == [True, True]


def test_after_a_cancel_operations_wait_for_the_end(guest: Any) -> None:
    """Who cancels or drops a generation may go on at once: the next operation waits until the engine has ended it."""
    length, tail = guest("""
        endless = generation.StopConditions(None, [], [], True)
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill("x" * 10)
        for _ in range(20):
            going = generation.generate(context, SAMPLING, endless, options())
            going.__exit__(None, None, None)
            context.truncate(10)
        going = generation.generate(context, SAMPLING, endless, options())
        going.cancel()
        context.fill("end")
        return context.length(), context.tokens()[-3:]
    """)

    assert length >= 13
    assert tail == list(b"end")


def test_flush_tells_when_it_is_done(guest: Any) -> None:
    """A flush's event becomes ready, and its outcome is ok."""
    assert (
        guest("""
        context = Model.default().context()
        context.fill("x" * 100)
        await context.flush()
        draft = await context.generate(max_tokens=1)
        return draft.usage.cached_tokens
    """)
        == 100
    )


def test_a_context_that_is_dropped_while_it_generates(guest: Any) -> None:
    """The generation comes to its end all the same."""
    assert (
        guest("""
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill("hello")
        going = generation.generate(context, SAMPLING, STOP, options())
        context.__exit__(None, None, None)
        events.poll([going.ready()], None)
        return going.read().text
    """)
        == "hello"
    )


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("context.fill, 'x' * 5000", "CONTEXT_OVERFLOW", "would have 5,000 tokens; fake allows 4,096"),
        ("context.fill, 'x' * 40000", "CONTEXT_OVERFLOW", "would have 40,000 tokens"),
        ("context.fill_tokens, [1, 258]", "INVALID_ARGUMENT", "token 258 at position 1 is not below 258"),
        ("context.truncate, 1", "INVALID_ARGUMENT", "cannot truncate to 1 tokens: the context has 0"),
        (
            "generation.generate, context, SAMPLING, STOP, options()",
            "INVALID_ARGUMENT",
            "the context is empty",
        ),
    ],
)
def test_refusals_say_what_is_allowed(guest: Any, call: str, code: str, words: str) -> None:
    """What cannot be done is refused at once, with the numbers, and changes nothing."""
    refusal, length = guest(f"""
        context = contexts.Context.create(models.Model.open(None), None)
        return refused({call}), context.length()
    """)

    assert refusal[0] == code
    assert words in refusal[1]
    assert length == 0


def test_the_template_may_refuse_an_order_of_roles(guest: Any) -> None:
    """A system message in the middle is an invalid argument, in the template's words."""
    assert guest("""
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill_message(contexts.Role.USER, "a")
        return refused(context.fill_message, contexts.Role.SYSTEM, "b")
    """) == ["INVALID_ARGUMENT", "the system message must be the first"]


def test_evicting(guest: Any) -> None:
    """The middle goes; what is asked meanwhile waits for it; positions still count, and errors have their types."""
    text, kept, fork, refusals, overflow, room = guest("""
        model = Model.default()
        context = model.context()
        context.fill("abcdefghij")
        await context.evict(2, 5)
        text = model.detokenize(context.tokens)
        await context.keep(first=1, last=3)
        kept = model.detokenize(context.tokens)
        await context.keep(first=2, last=2)
        raw = contexts.Context.create(models.Model.open(None), None)
        raw.fill("abcdef")
        event = raw.evict(1, 3)
        fork = raw.fork()
        events.outcome(event)
        fork.fill("g")
        refusals = [refused(raw.evict, 3, 2)[0], refused(raw.evict, 0, 4)[0], refused(raw.evict, 3, 9)[0]]
        long = model.context()
        long.fill("x" * (model.context_length - 1))
        await long.evict(0, 1000)
        room = [[len(long), long.positions, long.room]]
        long.fill("y")
        room.append([len(long), long.positions, long.fork().room])
        long.truncate(0)
        room.append([len(long), long.positions])
        long.fill("x" * model.context_length)
        try:
            long.fill("z")
        except ContextOverflow as error:
            overflow = error.message
        return text, kept, model.detokenize(fork.tokens()), refusals, overflow, room
    """)

    assert (text, kept, fork) == ("abfghij", "ahij", "adefg")
    assert refusals == ["INVALID_ARGUMENT"] * 3
    assert "4,097 tokens" in overflow
    assert room == [[3095, 4095, 1], [3096, 4096, 0], [0, 0]]


def test_contexts_with_adapters(adapted: Any) -> None:
    """An adapter is one that the model has; forks and saved contexts keep it."""
    names, refused_names, saved = adapted("""
        model = Model.default()
        context = model.context(adapter="polite")
        context.fill("abc")
        fork = context.fork()
        await fork.save("polite/abc")
        await model.context().save("plain")
        opened = await Context.open("polite/abc")
        await opened.save("again")
        found = {saved.name: saved.adapter for saved in Context.saved()}
        for name in found:
            Context.delete(name)
        try:
            model.context(adapter="rude")
        except NotFound as error:
            return model.adapters, [error.message, error.hint], found
    """)

    assert names == ["polite", "brief"]
    assert refused_names == ["fake has no adapter 'rude'", "There are: polite, brief."]
    assert saved == {"polite/abc": "polite", "plain": None, "again": "polite"}
