"""Generations on this Python; tests/guest_sdk/test_runner.py runs them in the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tartlet_sdk import Generation, InvalidArgument, Model, Unavailable, wit


def generation() -> Generation:
    """One on a fresh context."""
    return Model.default().context().generate(max_tokens=9)


def test_awaiting_gives_the_draft(run_async: Callable[..., Any]) -> None:
    """A generation can be awaited, more than once, and its result read afterwards."""

    async def main() -> None:
        each = generation()
        with pytest.raises(Unavailable, match="has not ended yet"):
            each.result  # noqa: B018
        draft = await each
        assert await each is draft is each.result
        assert (str(draft), draft.finish_reason, draft.usage.generated_tokens) == ("some text", "length", 9)

    run_async(main())


def test_iterating_gives_chunks(run_async: Callable[..., Any]) -> None:
    """`async for` gives the pieces that make up the draft."""

    async def main() -> None:
        each = generation()
        chunks = [chunk async for chunk in each]
        assert "".join(map(str, chunks)) == each.result.text
        assert tuple(token for chunk in chunks for token in chunk.tokens) == each.result.tokens

    run_async(main())


def test_the_chunk_interval_is_checked(stub: Any) -> None:
    """A negative number or none at all is refused before anything starts."""
    for wrong in (-1, float("nan"), "0.1"):
        with pytest.raises(InvalidArgument, match="chunk_interval must be a"):
            Model.default().context().generate(chunk_interval=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("others", [0, 1])
def test_who_is_alone_waits_in_the_host(run_async: Callable[..., Any], stub: Any, others: int) -> None:
    """While another task waits for something that comes by itself, the event loop has to turn; else it need not."""
    polled: list[list[int]] = []
    poll = wit.events.poll

    async def main() -> None:
        sleepers = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(others)]
        await asyncio.sleep(0)
        wit.events.poll = lambda events, timeout: polled.append(events) or poll(events, timeout)
        assert (await generation()).text == "some text"
        for sleeper in sleepers:
            sleeper.cancel()

    try:
        run_async(main())
    finally:
        wit.events.poll = poll
    assert len(polled) == others


def test_a_generation_is_a_coroutine(run_async: Callable[..., Any]) -> None:
    """Whatever takes a coroutine takes a generation: tasks, groups, gather, wait_for."""

    async def main() -> list[str]:
        async with asyncio.TaskGroup() as group:
            in_group = group.create_task(generation())
        drafts = await asyncio.gather(generation(), asyncio.create_task(generation()))
        return [str(draft) for draft in (in_group.result(), *drafts, await asyncio.wait_for(generation(), 5))]

    assert run_async(main()) == ["some text"] * 4


def test_one_that_was_never_started_leaves_nothing(stub: Any) -> None:
    """A generation that nobody awaits has not begun, and closing it is no error."""
    each = generation()
    each.cancel()
    each.close()

    assert each._handle is None


def test_a_forgotten_await_is_told(stub: Any) -> None:
    """What a draft has, a generation has not: the error says so, and type checkers do as well."""
    each = generation()
    each.close()

    assert repr(each) == "<Generation, given up>"
    with pytest.raises(AttributeError, match=r"a Generation has no text, its Draft has\nWrite `draft = await"):
        each.text  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="a Generation has no attribute 'words'"):
        each.words  # type: ignore[attr-defined]  # noqa: B018
