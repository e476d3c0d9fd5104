"""Generating token by token: what programs see of it."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet import Limits

pytestmark = pytest.mark.runner

RAW = """
        context = Model.default().context()._open_handle
        context.fill("abcdefgh")
        PLAIN = stepping.Answer(True, None, None, [], [], None, [])
        def answer(*splices, **given):
            splices = [stepping.Splice(*each) for each in splices]
            return dataclasses.replace(PLAIN, splices=splices, **given)
        steps = stepping.start(context, SAMPLING, STOP, stepping.Options(None, None, None))
"""


def test_answers_and_outcomes(guest: Any) -> None:
    """`next` answers and waits; `answer`, `ready` and `outcome` do the same in three calls."""
    first, second, tokens = guest(
        RAW
        + """
        first = steps.next(PLAIN)
        steps.answer(PLAIN)
        events.poll([steps.ready()], None)
        second = steps.outcome()
        return [first.sampled, first.tokens, first.text, first.backtrack], second.text, context.tokens()
    """
    )

    assert first == [97, [97], "a", 0]
    assert second == "b"
    assert tokens == [*b"abcdefghab"]


def test_splices_say_what_has_happened(guest: Any) -> None:
    """Sampled tokens that are replaced, tokens that are taken back, and the text that goes with them."""
    replaced, back, tokens = guest(
        RAW
        + """
        replaced = steps.next(answer(([97], 1, [120, 121])))
        back = steps.next(answer(([], 4, [122]), sample=False))
        told = [[o.sampled, o.tokens, o.backtrack, o.text_backtrack, o.text] for o in (replaced, back)]
        return *told, context.tokens()
    """
    )

    assert replaced == [97, [120, 121], 0, 0, "xy"]
    assert back == [None, [122], 4, 2, "z"]
    assert tokens == [*b"abcdefz"]


def test_what_cannot_be_carried_out_changes_nothing(guest: Any) -> None:
    """A refused answer is an error of that call, and the next may follow."""
    refusal, sampled, length = guest(
        RAW
        + """
        refusal = refused(steps.next, answer(([], 20, []), sample=False))
        return refusal, steps.next(PLAIN).sampled, context.length()
    """
    )

    assert refusal == ["INVALID_ARGUMENT", "cannot go back 20 tokens: the context has 8"]
    assert (sampled, length) == (97, 9)


def test_out_of_turn(guest: Any) -> None:
    """Two answers at once, an outcome without an answer, filling the busy context: each is refused by name."""
    codes = guest(
        RAW
        + """
        codes = [refused(steps.outcome)[0]]
        steps.answer(PLAIN)
        codes += [refused(steps.answer, PLAIN)[0]]
        events.poll([steps.ready()], None)
        codes += [refused(steps.next, PLAIN)[0], refused(context.fill, "x")[0]]
        steps.outcome()
        return codes
    """
    )

    assert codes == ["UNAVAILABLE"] * 4


def test_a_fork_has_a_context_and_steps(guest: Any) -> None:
    """Parent and child go on from the same place, each on its own context."""
    texts = guest(
        RAW
        + """
        steps.next(PLAIN)
        other, child = steps.fork(7)
        branches = [(context, steps, 1), (other, child, 2)]
        for _, each, number in branches:
            each.answer(answer(allow=[110 + number]))
        waiting = {each.ready() for _, each, _ in branches}
        while waiting:
            waiting -= set(events.poll(list(waiting), None))
        return [[each.outcome().sampled, bytes(held.tokens()).decode()] for held, each, _ in branches]
    """
    )

    assert texts == [[111, "abcdefghao"], [112, "abcdefghap"]]


def test_it_ends_with_the_reason_and_the_usage(guest: Any) -> None:
    """The last outcome has the end; then there is nothing more, and the context is free again."""
    outcome, refusal = guest("""
        context = Model.default().context()._open_handle
        context.fill("abcdefgh")
        stop = dataclasses.replace(STOP, max_tokens=2)
        steps = stepping.start(context, SAMPLING, stop, stepping.Options(1, None, None))
        plain = stepping.Answer(True, None, None, [], [], None, [])
        steps.next(plain)
        last = steps.next(plain)
        context.fill("more")
        usage = last.finish.usage
        told = [last.finish.reason.name, usage.generated_tokens, last.log_probabilities.chosen.token]
        return told, refused(steps.next, plain)[0]
    """)

    assert outcome == ["LENGTH", 2, 98]
    assert refusal == "NOT_FOUND"


def test_stopping_frees_the_context(guest: Any) -> None:
    """After `stop` or a drop, the context can be filled again; answers are refused as cancelled."""
    length, refusal = guest(
        RAW
        + """
        steps.next(PLAIN)
        steps.stop()
        context.fill("xy")
        refusal = refused(steps.next, PLAIN)[0]
        again = stepping.start(context, SAMPLING, STOP, stepping.Options(None, None, None))
        again.next(PLAIN)
        again.__exit__(None, None, None)
        context.fill("z")
        return context.length(), refusal
    """
    )

    assert length == 13
    assert refusal == "CANCELLED"


def test_an_answer_after_stop_is_refused_at_once(guest: Any) -> None:
    """As cancelled, also before the engine has told the end; so is a fork."""
    answered, forked = guest(
        RAW
        + """
        steps.next(PLAIN)
        steps.stop()
        return refused(steps.answer, PLAIN), refused(steps.fork, None)
    """
    )

    assert answered[:2] == forked[:2] == ["CANCELLED", "the steps were stopped"]


def test_who_does_not_answer_in_time(guest: Any, fake: Any) -> None:
    """The steps end with the step and the limit named, the program goes on, and what it has logged stays."""
    refusal, filled = guest(
        RAW
        + """
        steps.next(PLAIN)
        print("thinking")
        await asyncio.sleep(0.3)
        refusal = refused(steps.next, PLAIN)
        context.fill("x")
        return refusal, context.length()
    """,
        limits=Limits(max_step_ms=50),
    )

    assert refusal == ["DEADLINE_EXCEEDED", "step 2 was not answered within 50 ms (max_step_ms)"]
    assert filled == 10


def test_the_lateness_wakes_who_waits(guest: Any) -> None:
    """Another task that waits for the steps' event hears of it."""
    assert (
        guest(
            RAW
            + """
        steps.next(PLAIN)
        events.poll([steps.ready()], 10**10)
        return refused(steps.outcome)[0]
    """,
            limits=Limits(max_step_ms=50),
        )
        == "DEADLINE_EXCEEDED"
    )


def test_time_that_is_held_is_not_counted(guest: Any) -> None:
    """After `hold` a program may take its time, until its next answer; then time counts again."""
    sampled, refusal = guest(
        RAW
        + """
        steps.next(PLAIN)
        steps.hold()
        await asyncio.sleep(0.3)
        sampled = steps.next(PLAIN).sampled
        await asyncio.sleep(0.3)
        return sampled, refused(steps.next, PLAIN)[0]
    """,
        limits=Limits(max_step_ms=100),
    )

    assert (sampled, refusal) == (98, "DEADLINE_EXCEEDED")


def test_waiting_for_an_outcome_that_nobody_has_asked_for_is_a_deadlock(guest: Any) -> None:
    """A wait that only the program's own answer could end fails at once."""
    code = guest(
        RAW + "        events.poll([steps.ready()], None)\n        return refused(events.outcome, steps.ready())[0]"
    )

    assert code == "DEADLOCK"


def test_an_answer_after_that_is_waited_for(guest: Any) -> None:
    """The failed wait does not count for the next one."""
    assert guest(RAW + "        events.poll([steps.ready()], None)\n        return steps.next(PLAIN).sampled") == 97


def test_masks_and_constraints_are_the_runs_own(guest: Any) -> None:
    """They are named by their ids, as in `generate`; all of an answer reaches the engine."""
    sampled = guest("""
        model = Model.default()
        context = model.context()._open_handle
        context.fill("abc")
        letters, digits = Mask.of([120, 121], model), Mask.of([48], model)
        from wit_world.imports import constraints
        constraint = constraints.Constraint.regex(model._handle, "[a-z]*")
        events.poll([constraint.ready()], None)
        options = stepping.Options(None, constraint.id(), letters.handle.id())
        steps = stepping.start(context, SAMPLING, STOP, options)
        boosts = [(letters.handle.id(), 2.0), (digits.handle.id(), -2.0)]
        answer = stepping.Answer(True, [97], letters.handle.id(), [(98, 1.5)], boosts, 0.5, [])
        return steps.next(answer).sampled
    """)

    assert sampled == 97


def test_the_limit_can_be_seen(guest: Any) -> None:
    """A program knows how long it has taken for an answer at most, and how long it may."""
    used, allowed = guest(
        RAW
        + """
        steps.next(PLAIN)
        await asyncio.sleep(0.05)
        steps.next(PLAIN)
        limit = run.limits()["max_step_ms"]
        return limit.used, limit.allowed
    """
    )

    assert 50 <= used < 30_000
    assert allowed == 30_000
