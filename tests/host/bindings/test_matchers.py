"""Matchers as programs see them, through the raw interface. To those of the fake engine, everything is allowed."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.runner

MAKERS = """
        from wit_world.imports.constraints import Constraint, Matcher
        model = models.Model.open(None)
        made = Constraint.regex(model, "a+")
        events.poll([made.ready()], None)
        def arrive(matcher):
            events.poll([matcher.ready()], None)
            place = matcher.place()
            return [list(place.forced), place.may_end, place.is_complete, place.problem]
"""


def test_a_way_through_a_constraint(guest: Any) -> None:
    """Begin, go on, go back, fork: after each its event becomes ready, and it tells where it is."""
    places = guest(
        MAKERS
        + """
        matcher = Matcher.begin(made)
        places = [arrive(matcher)]
        matcher.advance([97, 98])
        matcher.rollback(1)
        places.append(arrive(matcher))
        fork = matcher.fork()
        places.append(arrive(fork))
        fork.rollback(1)
        places.append([refused(fork.rollback, 1)[0], matcher.mask().count() == model.info().vocabulary_size])
        return places
    """
    )

    assert places == [[[], True, False, None]] * 3 + [["INVALID_ARGUMENT", True]]


def test_before_it_has_arrived_it_is_unavailable(guest: Any) -> None:
    """Nobody takes the place of an earlier move for that of the last one."""
    codes = guest(
        MAKERS
        + """
        matcher = Matcher.begin(made)
        codes = [refused(matcher.place)[0], refused(matcher.mask)[0]]
        arrive(matcher)
        matcher.advance([97])
        codes.append(refused(matcher.place)[0])
        arrive(matcher)
        return codes + [refused(matcher.advance, [10_000])[0], refused(matcher.advance, [97] * 100_000)[0]]
    """
    )

    assert codes == ["UNAVAILABLE"] * 3 + ["INVALID_ARGUMENT", "CONTEXT_OVERFLOW"]


def test_it_needs_a_compiled_constraint(guest: Any) -> None:
    """One that has an error, or is not compiled yet, is refused."""
    codes = guest(
        MAKERS
        + """
        bad = Constraint.regex(model, "(")
        early = refused(Matcher.begin, bad)[0]
        events.poll([bad.ready()], None)
        return [early, refused(Matcher.begin, bad)[0]]
    """
    )

    assert codes == ["UNAVAILABLE", "INVALID_ARGUMENT"]
