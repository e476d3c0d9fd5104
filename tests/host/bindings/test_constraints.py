"""Constraints as programs see them, through the raw interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet import sync
from tartlet.errors import InvalidHandleError

pytestmark = pytest.mark.runner

MAKERS = """
        from wit_world.imports import constraints
        model = models.Model.open(None)
        Constraint = constraints.Constraint
        context = contexts.Context.create(model, None)
        context.fill("abc")
"""


def test_every_kind_is_compiled_and_followed(guest: Any) -> None:
    """Each constructor gives a constraint whose event becomes ready, and whose id a generation takes."""
    texts = guest(
        MAKERS
        + """
        texts = []
        for made in (Constraint.json_schema(model, "{}"), Constraint.regex(model, "a+"),
                     Constraint.substring(model, "a"), Constraint.lark(model, 'start: "a"'),
                     Constraint.choices(model, ["a", "é"]), Constraint.tokens(model, [1, 2]),
                     Constraint.of_mask(constraints.Mask.all(model))):
            events.poll([made.ready()], None)
            assert made.ready() == made.ready()
            events.outcome(made.ready())
            with made:
                going = generation.generate(context, SAMPLING, STOP, options(constraint=made.id()))
            texts.append(going.next().text)
            context.truncate(3)
        return texts
    """
    )

    assert texts == ["abc"] * 7


def test_constraints_are_put_together_by_their_ids(guest: Any) -> None:
    """A combination of compiled ones is a constraint like any other, and outlives its parts; they can be nested."""
    text = guest(
        MAKERS
        + """
        parts = [Constraint.regex(model, "a+"), Constraint.choices(model, ["a"])]
        events.poll([parts[0].ready()], None)
        events.poll([parts[1].ready()], None)
        both = Constraint.all_of([part.id() for part in parts])
        events.poll([both.ready()], None)
        either = Constraint.any_of([both.id(), parts[0].id()])
        for part in (*parts, both):
            part.__exit__(None, None, None)
        events.poll([either.ready()], None)
        events.outcome(either.ready())
        return generation.generate(context, SAMPLING, STOP, options(constraint=either.id())).next().text
    """
    )

    assert text == "abc"


def test_combinations_are_checked(guest: Any) -> None:
    """Not of nothing, not of too many, not of what is not compiled."""
    refusals = guest(
        MAKERS
        + """
        made = Constraint.regex(model, "a")
        early = refused(Constraint.all_of, [made.id()])
        events.poll([made.ready()], None)
        return [early[0], refused(Constraint.any_of, [])[0], refused(Constraint.all_of, [made.id()] * 9)[0],
                refused(Constraint.all_of, [made.id()] * 8)]
    """
    )

    assert refusals == ["UNAVAILABLE", "INVALID_ARGUMENT", "INVALID_ARGUMENT", None]


def test_errors_are_refusals(guest: Any) -> None:
    """A bad grammar is the outcome and refuses generations; a token outside the vocabulary is refused at once."""
    refusals = guest(
        MAKERS
        + """
        bad = Constraint.regex(model, "(")
        events.poll([bad.ready()], None)
        return [
            refused(events.outcome, bad.ready()),
            refused(generation.generate, context, SAMPLING, STOP, options(constraint=bad.id()))[0],
            refused(Constraint.tokens, model, [10_000])[0],
        ]
    """
    )

    assert refusals[0][0] == "INVALID_ARGUMENT"
    assert "regex cannot be used" in refusals[0][1]
    assert refusals[1:] == ["INVALID_ARGUMENT", "INVALID_ARGUMENT"]


@pytest.mark.parametrize("number", ["12345", "going.ready()", "gone"])
def test_a_forged_id_ends_the_run(guest: Any, number: str) -> None:
    """The id must be that of a constraint which the run holds."""
    with pytest.raises(InvalidHandleError):
        guest(
            MAKERS
            + f"""
        made = Constraint.regex(model, "a")
        gone = made.id()
        events.poll([made.ready()], None)
        going = generation.generate(context, SAMPLING, STOP, options(constraint=made.id()))
        going.next()
        made.__exit__(None, None, None)
        generation.generate(context, SAMPLING, STOP, options(constraint={number}))
    """
        )


def test_what_a_run_leaves_is_freed(guest: Any, fake: sync.Host) -> None:
    """A program that drops nothing leaves nothing in the engine: the fixture checks the books."""
    assert (
        guest(
            MAKERS
            + """
        kept = [Constraint.regex(model, "a") for _ in range(5)]
        return len(kept)
    """
        )
        == 5
    )
