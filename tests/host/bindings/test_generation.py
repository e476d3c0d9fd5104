from typing import Any

import pytest

from tartlet_engine.api import EngineError, ErrorCode

pytestmark = pytest.mark.runner


def test_a_generation_awaited_whole(guest: Any) -> None:
    """It gives text, tokens, finish reason and usage."""
    text, tokens, reason, usage = guest("""
        context = Model.default().context()
        context.fill("hello")
        draft = await context.generate()
        return draft.text, draft.tokens, draft.finish_reason, [draft.usage.prompt_tokens, draft.usage.generated_tokens]
    """)

    assert (text, tokens, reason, usage) == ("hello", [*b"hello", 256], "eos", [5, 6])


def test_streamed_chunks_make_up_the_whole(guest: Any) -> None:
    """Chunks never split a character, and joined they are the text and the tokens."""
    chunks = guest("""
        context = Model.default().context()
        context.fill("größe €")
        return [[chunk.text, chunk.tokens] async for chunk in context.generate()]
    """)

    assert "".join(text for text, _ in chunks) == "größe €"
    assert bytes(token for _, tokens in chunks for token in tokens if token < 256).decode() == "größe €"


def test_next_waits_and_reads(guest: Any) -> None:
    """`next` gives what there is, waits if there is nothing, and after the last chunk is refused as `read` is."""
    texts, refusal = guest("""
        context = Model.default().context()._open_handle
        context.fill("größe" * 8)
        going = generation.generate(context, SAMPLING, STOP, options(streaming=True))
        chunks = [going.next()]
        while chunks[-1].finish is None:
            chunks.append(going.next())
        return [chunk.text for chunk in chunks], refused(going.next)[0]
    """)

    assert ("".join(texts), refusal) == ("größe" * 8, "NOT_FOUND")
    assert len(texts) > 1


def test_next_tells_of_a_failure(guest: Any, fake: Any) -> None:
    """A generation that fails while the program waits in `next` ends the wait with its error."""
    fake.engine.fail_next(EngineError(ErrorCode.KV_EXHAUSTED, "full"))
    assert (
        guest("""
        context = Model.default().context()._open_handle
        context.fill("x")
        going = generation.generate(context, SAMPLING, STOP, options())
        return refused(going.next)[0]
    """)
        == "KV_EXHAUSTED"
    )


def test_chunks_come_at_intervals(guest: Any) -> None:
    """With an interval longer than the generation, there are two chunks: the first tokens, and all others."""
    assert (
        guest("""
        context = Model.default().context()
        context.fill("x" * 500)
        return [len([chunk async for chunk in context.generate(chunk_interval=seconds)]) for seconds in (60, 0)]
    """)[0]
        == 2
    )


def test_what_stopped_it(guest: Any) -> None:
    """The stop string is named, and is not part of the text."""
    assert guest("""
        context = Model.default().context()
        context.fill("one two three")
        draft = await context.generate(stop=stop_strings(" th"))
        return draft.text, draft.finish_reason, draft.stop_string
    """) == ["one two", "stop-string", " th"]


def test_log_probabilities(guest: Any) -> None:
    """There is one for each token, if asked for."""
    assert guest("""
        context = Model.default().context()
        context.fill("hi")
        draft = await context.generate(logprobs=2)
        return [len(draft.tokens), len(draft.logprobs)]
    """) == [3, 3]


def test_cancelling(guest: Any) -> None:
    """A cancelled generation ends with what it has, and the reason."""
    text, reason = guest("""
        context = Model.default().context()
        context.fill("x" * 2000)
        going = context.generate(chunk_interval=0)
        got = ""
        async for chunk in going:
            got += chunk.text
            going.cancel()
        return got, going.result.finish_reason
    """)

    assert reason == "cancelled"
    assert 0 < len(text) < 2000


def test_what_is_dropped_is_cancelled(guest: Any, fake: Any) -> None:
    """A generation that nobody waits for any more stops; the context is usable again."""
    before = fake.host.stats().engine.generated_tokens

    assert (
        guest("""
        context = Model.default().context()
        context.fill("x" * 3000)
        try:
            await asyncio.wait_for(context.generate(), 0.02)
        except TimeoutError:
            pass
        context.truncate(5)
        return (await context.generate()).text
    """)
        == "xxxxx"
    )
    assert fake.host.stats().engine.generated_tokens - before < 3000


def test_reading_after_the_end(guest: Any) -> None:
    """After the last chunk a read is refused, and a wait for more is a deadlock unless it has a timeout."""
    status, refusal, ready = guest("""
        context = contexts.Context.create(models.Model.open(None), None)
        context.fill("hello")
        going = generation.generate(context, SAMPLING, STOP, options())
        events.poll([going.ready()], None)
        status = events.poll([going.ready()], 0) == [going.ready()]
        going.read()
        going.cancel()
        return status, refused(going.read)[0], events.poll([going.ready()], 1000)
    """)

    assert (status, refusal, ready) == (True, "NOT_FOUND", [])


def test_an_error_of_the_engine(guest: Any, fake: Any) -> None:
    """What fails in the engine is an error of that generation, in its words, and the context can be used again."""
    fake.engine.fail_next(EngineError(ErrorCode.KV_EXHAUSTED, "no page is free", "wait"))

    assert guest("""
        context = Model.default().context()
        context.fill("hello")
        try:
            await context.generate()
        except KvExhausted as error:
            return [error.message, error.hint, (await context.generate()).text]
    """) == ["no page is free", "wait", "hello"]


def test_seeds_come_from_the_runs(guest: Any) -> None:
    """The same seed of the run gives the same seeds of generations; two generations differ."""
    body = "return [runs.info().seed, __import__('random').random()]"

    assert guest(body, seed=7) == guest(body, seed=7)
    assert guest(body, seed=7) != guest(body, seed=8)
