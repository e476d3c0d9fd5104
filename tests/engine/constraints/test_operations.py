"""Constraints as commands: compiled for a run, followed by generations, gone with the run."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import CompileConstraint, ConstraintKind, Done, ErrorCode
from tartlet_engine.constraints import operations

REGEX = ConstraintKind.REGEX


def test_compiled_followed_and_freed(hash_engine: Any) -> None:
    """A constraint serves any number of generations; once freed it serves no new one, but those that run go on."""
    driver = hash_engine()
    run = driver.open_run()
    constraint = driver.compile(run, REGEX, "[ab]{6}|[ab]{9}")
    assert driver.is_done(constraint)
    contexts = [driver.create(run, [40 + number]) for number in range(3)]
    first, second = (driver.generate(context, constraint_id=constraint) for context in contexts[:2])
    driver.free_constraint(run, constraint)
    driver.free_constraint(run, constraint)
    late = driver.generate(contexts[2], constraint_id=constraint)
    driver.settle()

    assert driver.failure(late).code == ErrorCode.NOT_FOUND
    for generation in (first, second):
        assert len(driver.text(generation)) in (6, 9)
        assert set(driver.text(generation)) <= set("ab")


def test_a_bad_grammar_fails_by_its_id(hash_engine: Any) -> None:
    """What cannot be compiled is told with the library's message, and there is no such constraint then."""
    driver = hash_engine()
    run = driver.open_run()
    constraint = driver.compile(run, REGEX, "(a")
    generation = driver.generate(driver.create(run, [40]), constraint_id=constraint)

    assert driver.failure(constraint).code == ErrorCode.INVALID_ARGUMENT
    assert "unclosed group" in driver.failure(constraint).message
    assert driver.failure(generation).code == ErrorCode.NOT_FOUND


def test_constraints_belong_to_their_run(hash_engine: Any) -> None:
    """Another run cannot use or free it, of the same tenant either."""
    driver = hash_engine()
    owner, other = driver.open_run(), driver.open_run()
    constraint = driver.compile(owner, REGEX, "[ab]")
    foreign = driver.generate(driver.create(other, [40]), constraint_id=constraint)
    driver.free_constraint(other, constraint)
    own = driver.generate(driver.create(owner, [40]), constraint_id=constraint)
    driver.settle()

    assert driver.failure(foreign).code == ErrorCode.NOT_FOUND
    assert driver.text(own) in ("a", "b")


def test_what_is_not_there_yet_is_unavailable(hash_engine: Any) -> None:
    """A generation does not wait for a constraint that is being compiled."""
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, [40])
    driver.do(CompileConstraint(1000, run, REGEX, "[ab]"))
    generation = driver.generate(context, constraint_id=1000)
    driver.settle()

    assert driver.failure(generation).code == ErrorCode.UNAVAILABLE
    assert driver.is_done(1000)


@pytest.mark.parametrize("ending", ["close", "free"])
def test_nobody_hears_of_what_was_given_up(hash_engine: Any, ending: str) -> None:
    """A constraint that is freed, or whose run is closed, before it is compiled, is not told of."""
    driver = hash_engine()
    run = driver.open_run()
    driver.do(CompileConstraint(1000, run, REGEX, "[ab]"))
    if ending == "close":
        driver.close_run(run)
    else:
        driver.free_constraint(run, 1000)
    other = driver.open_run()
    later = driver.compile(other, REGEX, "[cd]")
    driver.settle()

    assert driver.is_done(later)
    assert Done(1000) not in driver.events
    assert driver.failures == []


def test_refusals(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id twice, an unknown run, and more than a run may have."""
    monkeypatch.setattr(operations, "MOST_OF_A_RUN", 2)
    driver = hash_engine()
    run = driver.open_run()
    first = driver.compile(run, REGEX, "a")
    driver.do(CompileConstraint(first, run, REGEX, "b"))
    unknown = driver.compile(999, REGEX, "a")
    driver.compile(run, REGEX, "b")
    too_many = driver.compile(run, REGEX, "c")

    assert driver.failure(first).code == ErrorCode.ALREADY_EXISTS
    assert driver.failure(unknown).code == ErrorCode.NOT_FOUND
    assert driver.failure(too_many).code == ErrorCode.QUOTA_EXCEEDED


def test_a_model_without_an_end_has_no_constraints(hash_engine: Any) -> None:
    """Without a compiler they are unsupported, by name."""
    driver = hash_engine()
    run = driver.open_run()
    driver.core.constraints._compiler, kept = None, driver.core.constraints._compiler
    constraint = driver.compile(run, REGEX, "a")
    driver.core.constraints._compiler = kept

    assert driver.failure(constraint).code == ErrorCode.UNSUPPORTED


def test_a_hostile_grammar_costs_its_neighbour_nothing(tiny_engine: Any) -> None:
    """While a text that would compile for minutes is tried, a neighbour's tokens keep coming, the same as alone."""
    driver = tiny_engine()
    run, hostile_run = driver.open_run(), driver.open_run()
    alone = driver.generate(driver.create(run, range(10, 20)), max_tokens=300)
    driver.settle()
    beside = driver.generate(driver.create(run, range(10, 20)), max_tokens=300)
    hostile = 9000
    driver.do(
        CompileConstraint(hostile, hostile_run, ConstraintKind.JSON_SCHEMA, '{"type": "integer", "multipleOf": 999983}')
    )
    driver.step(50)
    assert len(driver.tokens(beside)) >= 50
    driver.settle()

    assert driver.tokens(beside) == driver.tokens(alone)
    assert driver.failure(hostile).code == ErrorCode.QUOTA_EXCEEDED
