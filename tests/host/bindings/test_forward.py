"""Forward passes as programs see them, through the raw interface and the SDK, on the fake engine."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytestmark = pytest.mark.runner

START = """
        from wit_world.imports import forward
        model = models.Model.open(None)
        context = contexts.Context.create(model, None)
        context.fill("ab")
        def wanted(parents=None, positions=None, logprobs=True, requests=()):
            return forward.Options(parents, positions, logprobs, list(requests))
        def request(row, sampling=None, top=0, given=(), entropy=False, logits=False):
            return forward.Request(row, sampling, 0, top, list(given), entropy, logits)
        def begin(tokens, *args, **kwargs):
            made = forward.forward(context, tokens, wanted(*args, **kwargs))
            events.poll([made.ready()], None)
            return made
"""


def test_a_pass_is_read_and_committed(guest: Any) -> None:
    """Rows are numbered from the context's last token; what is committed is in the context, in order."""
    found, tokens, again = guest(
        START
        + """
        made = begin([99, 100, 7], [0, 1, 1], None, True, [
            request(0, top=2, given=[99, 5], entropy=True),
            request(3, SAMPLING),
            request(1, logits=True),
        ])
        assert made.ready() == made.ready()
        found = made.read()
        again = refused(made.read)
        made.commit([1, 2])
        first, second, third = found.rows
        return [
            [found.log_probabilities, [each.token for each in first.top], first.given, first.entropy,
             second.sampled.token, third.logits[:2], len(third.logits)],
            context.tokens(),
            again,
        ]
    """
    )

    likely, other = math.log(0.5), math.log(0.5 / 258)
    logprobs, top, given, entropy, sampled, logits, num_logits = found
    assert logprobs == pytest.approx([likely, likely, other], abs=0.01)  # 98 is b
    assert top[0] == 99
    assert given == pytest.approx([likely, other], abs=0.01)
    assert entropy > 1
    assert (sampled, logits) == (8, [0, 0])
    assert num_logits == pytest.approx(130, abs=2)
    assert tokens == [97, 98, 99, 100]
    assert again[0] == "NOT_FOUND"


def test_the_context_is_busy_until_then(guest: Any) -> None:
    """Calls that change it are refused, forks have none of the pass; after discarding and dropping it goes on."""
    refusals, tokens = guest(
        START
        + """
        refusals = []
        made = begin([99])
        refusals += [refused(context.fill, "c")[0], refused(context.truncate, 1)[0], refused(context.flush)[0]]
        refusals += [refused(generation.generate, context, SAMPLING, STOP, options())[0]]
        refusals += [refused(forward.forward, context, [1], wanted())[0]]
        fork = context.fork()
        made.discard()
        made.discard()
        refusals.append(refused(made.commit, [1])[0])
        context.fill("c")
        with begin([99]):
            pass
        context.fill("d")
        return refusals, [fork.tokens(), context.tokens()]
    """
    )

    assert refusals == ["UNAVAILABLE"] * 5 + ["NOT_FOUND"]
    assert tokens == [[97, 98], [97, 98, 99, 100]]


def test_what_is_refused(guest: Any) -> None:
    """An empty context, tokens that are none, a path that is none, too many requests and passes: by name."""
    refusals = guest(
        START
        + """
        empty = contexts.Context.create(model, None)
        refusals = [refused(forward.forward, empty, [1], wanted())]
        refusals.append(refused(forward.forward, context, [100_000], wanted()))
        refusals.append(refused(forward.forward, context, [1], wanted(requests=[request(0, given=[100_000])])))
        refusals.append(refused(forward.forward, context, [1], wanted(requests=[request(0)] * 513)))
        bad = generation.Sampling(-1.0, 0, 1.0, 0.0, 1.0, 0.0, 0.0, [], None)
        refusals.append(refused(forward.forward, context, [1], wanted(requests=[request(0, bad)])))
        made = begin([1, 2, 3], [0, 0, 2])
        for path in ([3], [1, 2], [0], [4], [2, 3, 3]):
            refusals.append(refused(made.commit, path))
        made.commit([2, 3])
        made.__exit__(None, None, None)
        many = [contexts.Context.create(model, None) for _ in range(65)]
        passes = []
        for each in many[:64]:
            each.fill("x")
            passes.append(forward.forward(each, [1], wanted()))
        many[64].fill("x")
        refusals.append(refused(forward.forward, many[64], [1], wanted()))
        passes.pop().__exit__(None, None, None)
        forward.forward(many[64], [1], wanted())
        return [each[0] for each in refusals]
    """
    )

    assert refusals[:-1] == ["INVALID_ARGUMENT"] * 10
    assert refusals[-1] == "QUOTA_EXCEEDED"


def test_a_context_that_is_freed(guest: Any) -> None:
    """Its pass ends, and can be dropped afterwards."""
    assert guest(
        START
        + """
        made = forward.forward(context, [1], wanted())
        context.__exit__(None, None, None)
        events.poll([made.ready()], None)
        error = refused(made.read)
        made.__exit__(None, None, None)
        return error[0]
    """
    ) in ("CANCELLED", "None")


def test_the_turn_is_begun(guest: Any) -> None:
    """After a user's message a pass is about what the assistant says, as a generation is."""
    assert guest("""
        context = Model.default().context()
        context.user("hi")
        before = len(context)
        with await context.forward(ask=[Ask()]) as found:
            pass
        fresh = Model.default().context()
        fresh.user("hi")
        fresh.cue()
        return [len(context) > before, context.tokens == fresh.tokens]
    """) == [True, True]


def test_scores(guest: Any) -> None:
    """Each text's log-probability is the sum of its tokens', however many passes that takes; nothing is kept."""
    scores, logprobs, kept, top = guest("""
        context = Model.default().context()
        context.fill("ab")
        scores = await context.score(["c", "cd", "ce", "x", "cdefgh" * 60, "z" * 200, "y" * 200])
        logprobs = await context.logprobs("cdz")
        likely = await context.next_distribution(top=3)
        return scores, [[each.token, each.logprob] for each in logprobs], len(context), likely.top[0].token
    """)

    likely, other = math.log(0.5), math.log(0.5 / 258)
    assert scores[:4] == pytest.approx([likely, 2 * likely, likely + other, other], abs=0.02)
    assert scores[4] == pytest.approx(301 * likely + 59 * other, rel=0.01)
    assert scores[5:] == pytest.approx([200 * other, 200 * other], rel=0.01)
    assert [token for token, _ in logprobs] == [99, 100, 122]
    assert [value for _, value in logprobs] == pytest.approx([likely, likely, other], abs=0.01)
    assert (kept, top) == (2, 99)


def test_sdk_passes(guest: Any) -> None:
    """A path is given by the tokens' indexes; what is out of range is refused in the author's terms."""
    tokens, errors = guest("""
        context = Model.default().context()
        context.fill("ab")
        ask = [Ask(2, sample=Sampler.greedy(), logits=True)]
        found = await context.forward([1, 2, 3], parents=[-1, -1, 1], ask=ask)
        errors = []
        for act in (lambda: found.commit([0, 2]), lambda: found.commit([-1])):
            try:
                act()
            except InvalidArgument as error:
                errors.append(str(error))
        assert found.rows[0].sampled.token == 4
        assert len(found.rows[0].logits) == Model.default().info.vocabulary_size
        found.commit([1, 2])
        try:
            found.commit([])
        except InvalidArgument as error:
            errors.append(str(error))
        for wrong in ({"tokens": ["a"]}, {"ask": [Ask(-2)]}, {"ask": [Ask(sample=3)]}, {"parents": [-2]}):
            try:
                await context.forward(**{"tokens": [1], **wrong})
            except InvalidArgument as error:
                errors.append(str(error))
        return context.tokens, errors
    """)

    assert tokens == [97, 98, 2, 3]
    assert len(errors) == 7
