"""Matchers that programs move themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine.api import (
    ConstraintKind,
    ErrorCode,
    ForkMatcher,
    FreeMatcher,
    MatcherMoved,
    MoveMatcher,
    OpenMatcher,
)
from tartlet_engine.constraints import operations
from tartlet_engine.tokenizer import ModelTokenizer

REGEX = ConstraintKind.REGEX


class Moves:
    """A run with one constraint, and the matchers of it."""

    def __init__(self, driver: Any, regex: str, **limits: Any) -> None:
        self.driver = driver
        self.run = driver.open_run(**limits)
        self.constraint = driver.compile(self.run, REGEX, regex)

    def open(self, matcher: int = 9000) -> MatcherMoved:
        self.driver.do(OpenMatcher(matcher, self.run, self.constraint))
        return self.last(matcher)

    def move(self, num_back: int, tokens: list[int], matcher: int = 9000) -> MatcherMoved:
        self.driver.do(MoveMatcher(matcher, self.run, num_back, tuple(tokens)))
        return self.last(matcher)

    def last(self, matcher: int) -> MatcherMoved:
        self.driver.settle()
        return [each for each in self.driver.events if isinstance(each, MatcherMoved) and each.matcher_id == matcher][
            -1
        ]


def ids(moved: MatcherMoved) -> set[int]:
    bits = int.from_bytes(moved.mask, "little")
    return {token_id for token_id in range(512) if bits >> token_id & 1}


def test_it_tells_what_may_come_and_what_must(hash_engine: Any, tiny_folder: Any) -> None:
    """The mask of its place, forced tokens that it has not gone through, and whether it may end there."""
    text = ModelTokenizer(tiny_folder)
    moves = Moves(hash_engine(), "The quick[ab]?")
    moved = moves.open()
    assert list(moved.forced) == text.encode("The quick")
    assert ids(moved) == {moved.forced[0]}
    assert not moved.may_end
    moved = moves.move(0, list(moved.forced))
    assert moved.may_end
    assert not moved.is_complete
    assert moved.forced == ()
    assert ids(moved) >= {text.encode("a")[0], *text.eos_token_ids}
    moved = moves.move(0, text.encode("b"))
    assert (moved.may_end, moved.is_complete, ids(moved)) == (True, True, set(text.eos_token_ids))
    moved = moves.move(0, text.encode("b"))
    assert moved.problem
    assert ids(moved) == set()
    moved = moves.move(2, text.encode("a"))
    assert moved.is_complete
    assert moved.problem is None


def test_forks_go_their_own_ways(hash_engine: Any, tiny_folder: Any) -> None:
    """A fork is at the same place; freeing the one does not concern the other."""
    text = ModelTokenizer(tiny_folder)
    moves = Moves(hash_engine(), "[ab]{2}[cd]{2}")
    moves.open()
    moves.move(0, text.encode("ab"))
    moves.driver.do(ForkMatcher(9000, moves.run, 9001), FreeMatcher(9000, moves.run))
    child = moves.last(9001)

    assert text.encode("c")[0] in ids(child)
    assert moves.move(0, text.encode("cd"), 9001).is_complete
    moves.driver.do(MoveMatcher(9000, moves.run, 0, (5,)))
    assert moves.driver.failure(9000).code == ErrorCode.NOT_FOUND


def test_refusals(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back beyond the beginning, tokens outside the vocabulary, too many, an id twice, unknown and foreign ones."""
    driver = hash_engine(context_len=20)
    moves = Moves(driver, "[ab]*")
    moves.open()
    other = driver.open_run()
    for number, command in enumerate(
        [
            MoveMatcher(9000, moves.run, 1, ()),
            MoveMatcher(9000, moves.run, 0, (512,)),
            MoveMatcher(9000, moves.run, 0, (70,) * 21),
            MoveMatcher(9000, other, 0, (70,)),
            OpenMatcher(9000, moves.run, moves.constraint),
            OpenMatcher(9001, moves.run, 12345),
            OpenMatcher(9001, other, moves.constraint),
            ForkMatcher(9000, moves.run, 9000),
        ]
    ):
        driver.do(command)
        assert len(driver.failures) == number + 1, command
    monkeypatch.setattr(operations, "MOST_MATCHERS", 1)
    driver.do(OpenMatcher(9001, moves.run, moves.constraint))
    driver.do(ForkMatcher(9000, moves.run, 9001))
    generation = driver.generate(driver.create(moves.run, [40]), constraint_id=moves.constraint)

    assert [each.error.code for each in driver.failures[-3:]] == [ErrorCode.QUOTA_EXCEEDED] * 3
    assert driver.failure(generation).code == ErrorCode.QUOTA_EXCEEDED


def test_a_run_takes_its_matchers_with_it(hash_engine: Any) -> None:
    """Nobody hears of those of a closed run; the fixture checks the books."""
    driver = hash_engine()
    moves = Moves(driver, "[ab]*")
    driver.do(OpenMatcher(9000, moves.run, moves.constraint))
    driver.close_run(moves.run)
    driver.settle()

    assert not [each for each in driver.events if isinstance(each, MatcherMoved)]


def test_work_is_charged_to_the_tenant(hash_engine: Any) -> None:
    """Following a constraint counts for the tenant's share, with a generation and without."""
    driver = hash_engine()
    moves = Moves(driver, "[ab]*", tenant="acme")
    share = driver.core._shares.tenants["acme"]
    moves.open()
    charged = share.counter
    assert charged > 0
    moves.move(0, [5])
    assert share.counter > charged
