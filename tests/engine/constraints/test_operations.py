"""Constraints as commands: compiled for a run, followed by generations, gone with the run."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tartlet_engine.api import (
    Combination,
    CombineConstraints,
    CompileConstraint,
    ConstraintKind,
    ConstrainToMask,
    Done,
    ErrorCode,
    MakeMask,
)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConstraintKind.JSON_SCHEMA, '{"items":' * 2000 + "{}" + "}" * 2000),
        (REGEX, "(" * 5000 + "a" + ")" * 5000),
        (REGEX, "(((a{100}){100}){100}){100}"),
        (REGEX, "(a|b)*a(a|b){25}c"),
        (REGEX, ".*a.{500}"),
        (ConstraintKind.JSON_SCHEMA, json.dumps({"enum": [f"value {number}" for number in range(12_000)]})),
        (ConstraintKind.JSON_SCHEMA, json.dumps({"properties": {f"p{number}": {} for number in range(3000)}})),
        (ConstraintKind.JSON_SCHEMA, '{"$ref": "#"}'),
        (ConstraintKind.LARK, 'start: e\ne: e e | "a" | "(" e ")" |'),
        (ConstraintKind.LARK, "start: T\nT: /(.*a.*b.*c.*d)/ & ~/.*(e.*f|g.*h).*/ & /(.{3})*/"),
    ],
    ids=[
        "deep schema",
        "deep regex",
        "product",
        "blow-up",
        "far back",
        "enumeration",
        "fields",
        "loop",
        "empty",
        "and",
    ],
)
def test_a_hostile_text_is_an_error_or_works(tiny_engine: Any, kind: ConstraintKind, text: str) -> None:
    """Nesting, blow-up, huge enumerations: a typed error when compiled or followed, and neighbours go on as alone."""
    driver = tiny_engine()
    run, hostile_run = driver.open_run(), driver.open_run()
    alone = driver.generate(driver.create(run, range(10, 20)), max_tokens=60)
    driver.settle()
    constraint = driver.compile(hostile_run, kind, text)
    beside = driver.generate(driver.create(run, range(10, 20)), max_tokens=60)
    options = {"temperature": 3.0, "max_tokens": 60, "ignore_eos": False}
    hostile = driver.generate(driver.create(hostile_run, [40]), constraint_id=constraint, **options)
    driver.settle()

    assert driver.tokens(beside) == driver.tokens(alone)
    refused = (ErrorCode.INVALID_ARGUMENT, ErrorCode.QUOTA_EXCEEDED)
    if not driver.is_done(constraint):
        assert driver.failure(constraint).code in refused
    elif driver.failures:
        assert driver.failure(hostile).code in refused
    else:
        driver.finished(hostile)


def test_combinations_are_constraints(hash_engine: Any) -> None:
    """Made of compiled ones, at once; they outlive their parts, and can be parts themselves, up to a number of them."""
    driver = hash_engine()
    run = driver.open_run()
    one, other = driver.compile(run, REGEX, "[a-f]{4}"), driver.compile(run, REGEX, "[d-k]+")
    both, either, many = 5000, 5001, 5002
    driver.do(CombineConstraints(both, run, Combination.ALL_OF, (one, other)))
    driver.do(CombineConstraints(either, run, Combination.ANY_OF, (both, one)))
    driver.free_constraint(run, one)
    generations = [driver.generate(driver.create(run, [40 + n]), constraint_id=both, seed=n) for n in range(4)]
    nested = driver.generate(driver.create(run, [50]), constraint_id=either)
    driver.do(CombineConstraints(many, run, Combination.ANY_OF, (either, either, either)))
    driver.do(CombineConstraints(5003, run, Combination.ANY_OF, (either, 9999)))
    driver.settle()

    assert all(re.fullmatch("[d-f]{4}", driver.text(generation)) for generation in generations)
    assert re.fullmatch("[a-f]{4}", driver.text(nested))
    assert driver.failure(many).code == ErrorCode.INVALID_ARGUMENT
    assert driver.failure(5003).code == ErrorCode.NOT_FOUND


def test_parts_that_cannot_go_on_together_are_an_error(hash_engine: Any) -> None:
    """Where all allow something, but not the same, the generation ends by name."""
    driver = hash_engine()
    run = driver.open_run()
    parts = tuple(driver.compile(run, REGEX, regex) for regex in ("ab", "cd"))
    driver.do(CombineConstraints(5000, run, Combination.ALL_OF, parts))
    generation = driver.generate(driver.create(run, [40]), constraint_id=5000)
    driver.settle()

    assert driver.failure(generation).code == ErrorCode.INVALID_ARGUMENT
    assert "no token is allowed" in driver.failure(generation).message


def test_a_mask_is_a_constraint(hash_engine: Any) -> None:
    """Any number of its tokens; not of one that is empty."""
    driver = hash_engine()
    run = driver.open_run()
    driver.do(MakeMask(5000, run, (0b11 << 70).to_bytes(64, "little")), MakeMask(5001, run, bytes(64)))
    driver.do(ConstrainToMask(5002, run, 5000), ConstrainToMask(5003, run, 5001))
    generation = driver.generate(driver.create(run, [40]), constraint_id=5002, max_tokens=10, temperature=2.0)
    driver.settle()

    assert set(driver.tokens(generation)) <= {70, 71, *driver.info.eos_token_ids}
    assert driver.failure(5003).code == ErrorCode.INVALID_ARGUMENT
