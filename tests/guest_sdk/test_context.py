"""Contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tartlet_sdk import Context, InvalidArgument, Model, SavedContext, max_tokens


def test_filling_appends(stub: Any) -> None:
    """Messages by role, text, tokens and the cue arrive in order; the length counts tokens."""
    context = Model.default().context()
    assert (len(context), bool(context)) == (0, True)
    context.system("a")
    context.user("b")
    context.assistant("c")
    context.tool("d")
    context.fill("e")
    context.fill_tokens([33])
    context.cue()

    assert bytes(context.tokens).decode() == "SYSTEM: a\nUSER: b\nASSISTANT: c\nTOOL: d\ne!ASSISTANT: "
    context.truncate(3)
    assert len(context) == 3


def test_a_fork_goes_its_own_way(stub: Any, run_async: Callable[..., Any]) -> None:
    """What a fork appends does not concern its parent."""
    context = Model.default().context()
    context.fill("ab")
    run_async(context.flush())
    fork = context.fork()
    fork.fill("c")

    assert (bytes(context.tokens), bytes(fork.tokens)) == (b"ab", b"abc")


def test_a_context_shows_its_length(stub: Any) -> None:
    """Its `repr` has the number of tokens, until it is closed."""
    context = Model.default().context()
    context.fill("x" * 1234)

    assert repr(context) == "<Context, 1,234 tokens>"
    context.close()
    assert repr(context) == "<Context, closed>"


def test_a_closed_context_says_so(stub: Any) -> None:
    """Closing twice does nothing; using it afterwards is an error that names the call."""
    with Model.default().context() as context:
        pass
    context.close()

    with pytest.raises(InvalidArgument, match=r"Context\.fork: the context was closed"):
        context.fork()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.user(None), "Context.user: text must be a str, not NoneType"),
        (lambda c: c.fill_tokens(["a"]), "Context.fill_tokens: tokens must be token ids"),
        (lambda c: c.truncate(-1), "Context.truncate: length must be from 0 to 4294967295, not -1"),
        (lambda c: c.generate(0.7), "Context.generate: sampler must be a Sampler, not float"),
        (lambda c: c.generate(stop="end"), "Context.generate: stop must be a stop condition, not str"),
        (lambda c: c.generate(logprobs=21), "Context.generate: logprobs must be from 0 to 20, not 21"),
        (lambda c: c.generate(max_tokens=0), "max_tokens: max_tokens must be from 1"),
    ],
)
def test_wrong_arguments_are_named(stub: Any, call: Callable[[Context], Any], message: str) -> None:
    """Each is refused at once, by call and argument."""
    with pytest.raises(InvalidArgument) as caught:
        call(Model.default().context())

    assert str(caught.value).startswith(message)


def test_max_tokens_adds_to_the_stop_condition(stub: Any) -> None:
    """`max_tokens=` and `stop=` are both reasons to stop."""
    generation = Model.default().context().generate(stop=max_tokens(9), max_tokens=5)
    generation.close()

    assert generation._stop.max_tokens == 5


def test_saving_and_opening(stub: Any, run_async: Callable[..., Any]) -> None:
    """What is saved is opened by its name, listed and deleted."""
    context = Model.default().context()
    context.fill("ab")
    run_async(context.save("name", ttl=2.5, overwrite=True))
    opened = run_async(Context.open("name", Model.default()))

    assert bytes(opened.tokens) == b"ab"
    assert Context.saved() == [SavedContext("name", "stub", None, 2, 2, None)]
    Context.delete("name")
    assert Context.saved() == []


@pytest.mark.parametrize("options", [{"ttl": -1}, {"ttl": 0}, {"ttl": float("inf")}, {"ttl": "1"}, {"ttl": 1e12}])
def test_times_to_live_are_checked(stub: Any, run_async: Callable[..., Any], options: dict[str, Any]) -> None:
    """Before the host is asked."""
    with pytest.raises(InvalidArgument, match="ttl"):
        run_async(Model.default().context().save("name", **options))


def test_evicting(stub: Any, run_async: Callable[..., Any]) -> None:
    """A range goes out of the middle; `keep` works it out from both ends."""
    context = Model.default().context()
    context.fill("abcdefgh")
    run_async(context.evict(1, 3))
    assert bytes(context.tokens) == b"adefgh"
    run_async(context.keep(first=2, last=3))
    assert bytes(context.tokens) == b"adfgh"
    run_async(context.keep(first=3, last=3))
    assert bytes(context.tokens) == b"adfgh"
    assert (len(context), context.positions, context.room) == (5, 8, Model.default().context_length - 8)

    for attempt in (context.evict(-1, 3), context.evict(0, 1.5), context.keep(first=1, last=0)):  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument):
            run_async(attempt)
