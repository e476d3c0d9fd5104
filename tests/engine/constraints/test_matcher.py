"""One generation's way through a constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.follower import GrammarFollower
from tartlet_engine.constraints.grammars import compile_grammar
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.pool import MaskPool
from tartlet_engine.constraints.vocabulary import TokenIndex, Vocabulary, words_of
from tartlet_engine.tokenizer import ModelTokenizer


@pytest.fixture
def text(tiny_folder: Path) -> ModelTokenizer:
    """The tiny model's tokenizer."""
    return ModelTokenizer(tiny_folder)


@pytest.fixture
def make(text: ModelTokenizer) -> Iterator[Callable[..., Matcher]]:
    """Make matchers of a constraint."""
    vocabulary = Vocabulary.of(text, 512)
    tokenizer, index = vocabulary.make_tokenizer(), TokenIndex(vocabulary)
    pool = MaskPool(2)

    def make(kind: ConstraintKind, source: str, **options: Any) -> Matcher:
        return Matcher(
            GrammarFollower(compile_grammar(tokenizer, kind, source), index), index.eos_words, pool, **options
        )

    yield make
    pool.shutdown()


def allowed(matcher: Matcher) -> set[int]:
    """The ids that the mask allows."""
    assert matcher.wait_mask(60)
    return set(np.flatnonzero(np.unpackbits(matcher.mask.view(np.uint8), bitorder="little")).tolist())


def test_masks_hold_what_may_come_next(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """Exactly the tokens whose bytes can go on; the end only where the constraint may end."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    plain = {i for i in range(3, 512) if text.table[i] and set(text.table[i]) <= set(b"ab")}
    assert allowed(matcher) == plain
    matcher.advance(text.encode("a")[0])
    assert allowed(matcher) == plain | set(text.eos_token_ids)


def test_forced_tokens_are_given_once(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """What must come is given as the model's tokens, and the mask is that of the position after it."""
    matcher = make(ConstraintKind.REGEX, "The quick (b|c)")
    assert matcher.wait_forced(60)
    forced = matcher.take_forced()

    assert text.decode(forced) == "The quick "[: len(text.decode(forced))] != ""
    assert matcher.take_forced() == []
    left = "The quick "[len(text.decode(forced)) :]
    starts = {text.table[token_id] for token_id in allowed(matcher)}
    assert all((left + "b").encode().startswith(each) or (left + "c").encode().startswith(each) for each in starts)


def test_it_is_complete_when_nothing_may_follow(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """A constraint that is one text is complete at once; one that may go on is not."""
    whole = make(ConstraintKind.CHOICES, '["fox"]')
    assert whole.wait_mask(60)
    assert whole.is_complete
    assert text.decode(whole.take_forced()) == "fox"
    longer = make(ConstraintKind.REGEX, "a*")
    assert longer.wait_mask(60)
    assert not longer.is_complete


def test_matchers_are_apart(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """What one generation does to its matcher does not concern another of the same constraint."""
    first, second = make(ConstraintKind.REGEX, "a|b[xy]"), make(ConstraintKind.REGEX, "a|b[xy]")
    before = allowed(second)
    allowed(first)
    first.advance(text.encode("b")[0])

    assert allowed(first) != before == allowed(second)


def test_a_token_that_is_not_allowed_is_a_problem(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """It never goes on silently from what the constraint does not have."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    allowed(matcher)
    matcher.advance(text.encode("z")[0])

    assert matcher.wait_mask(60)
    assert matcher.problem
    assert not matcher.is_complete


def test_an_error_of_our_own_is_a_problem(make: Callable[..., Matcher]) -> None:
    """Whatever fails on the pool, the engine hears of it instead of waiting."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    allowed(matcher)
    matcher.advance("no token")  # type: ignore[arg-type]

    assert matcher.wait_forced(60)
    assert matcher.wait_mask(60)
    assert "TypeError" in (matcher.problem or "")


def outcome(matcher: Matcher) -> tuple[set[int], list[int], bool, bool, str | None]:
    """All that a matcher tells."""
    tokens = allowed(matcher)
    return tokens, matcher.take_forced(), matcher.may_end, matcher.is_complete, matcher.problem


def test_it_goes_back_over_what_was_forced_and_sampled(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """After a rollback it is as if those tokens had never come: the same mask, the same forced tokens."""
    matcher = make(ConstraintKind.REGEX, "The quick (brown fox|black cat) sleeps")
    first = outcome(matcher)
    token = min(first[0])
    matcher.advance(token)
    second = outcome(matcher)
    matcher.rollback(1 + len(second[1]))
    assert outcome(matcher) == (first[0], [], *first[2:])
    matcher.rollback(len(first[1]))
    assert outcome(matcher) == first
    matcher.advance(token)
    assert outcome(matcher) == second


def test_what_was_forced_and_not_taken_is_forgotten(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """Tokens that are spliced in take the place of those that were about to be forced."""
    matcher = make(ConstraintKind.REGEX, "(ab|The quick fox|The slow ox)")
    assert matcher.wait_mask(60)
    matcher.advance(*text.encode("The q"))
    assert matcher.wait_mask(60)
    matcher.rollback(len(text.encode("The q")))
    matcher.move(0, text.encode("ab"))

    assert outcome(matcher)[2:] == (True, True, None)


def test_a_dead_end_is_left_by_going_back(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """A token that is not allowed leaves nothing, and going back over it brings everything back."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    before = allowed(matcher)
    matcher.advance(*text.encode("azb"))
    assert allowed(matcher) == set()
    assert matcher.problem
    matcher.rollback(len(text.encode("azb")))
    assert allowed(matcher) == before
    assert matcher.problem is None


def test_a_fork_is_at_the_same_place(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """Before what is forced and not taken, after what is taken; then each goes its own way."""
    matcher = make(ConstraintKind.REGEX, "The quick [ab]{3}")
    early = matcher.fork()
    late = early.fork()
    assert matcher.wait_mask(60)
    waiting = matcher.fork()
    first = outcome(matcher)
    taken = matcher.fork()

    assert [outcome(each) for each in (early, late, waiting)] == [first] * 3
    assert outcome(taken) == (first[0], [], *first[2:])
    matcher.advance(min(first[0]))
    assert outcome(matcher) != first
    taken.rollback(len(first[1]))
    assert outcome(taken) == first


def test_moves_that_follow_each_other_at_once(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """What comes of them is the same as one after the other, forks in between included."""
    slow, fast = (make(ConstraintKind.REGEX, "([a-f]{2} ){1,40}(The end|The start)") for _ in range(2))
    forks = []
    for number in range(30):
        tokens = text.encode("abcdef"[number % 5 : number % 5 + 2] + " ")
        slow.advance(*tokens)
        assert slow.wait_mask(60)
        fast.advance(*tokens)
        if number % 7 == 3:
            slow.move(len(tokens), text.encode("ee "))
            fast.move(len(tokens), text.encode("ee "))
            forks.append((slow.fork(), fast.fork()))
    forks.append((slow, fast))

    for one, other in forks:
        assert outcome(one) == outcome(other)


def test_nothing_is_allowed_outside_the_mask(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """The mask cuts what is forced and what may be sampled; where nothing is left, it ends if it may, or fails."""
    ids = text.encode("ab")
    words = words_of(ids, 512)
    assert allowed(make(ConstraintKind.REGEX, "[abc]{2}", allowed=words)) == set(ids)
    forced = make(ConstraintKind.REGEX, "ac(x|y)", allowed=words)
    assert allowed(forced) == set()
    assert "no token is allowed" in (forced.problem or "")
    ended = make(ConstraintKind.REGEX, "a(c|d)?", allowed=words)
    ended.advance(ids[0])
    assert allowed(ended) == set()
    assert ended.is_complete
    assert ended.problem is None


def test_it_need_not_go_by_what_is_forced(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """For a program it tells what is forced, and its mask is that of the place before it."""
    matcher = make(ConstraintKind.REGEX, "The quick (b|c)", takes_forced=False)
    mask, forced, *_ = outcome(matcher)
    assert forced[0] in mask
    matcher.advance(*forced)
    assert outcome(matcher)[1] == []
    matcher.rollback(len(forced))
    assert outcome(matcher)[:2] == (mask, forced)


def test_quick_moves_are_made_by_who_asks(make: Callable[..., Matcher], text: ModelTokenizer) -> None:
    """Once it is known to be quick, nothing is handed over before the mask; what was slow once stays on the pool."""
    matcher = make(ConstraintKind.REGEX, "[ab]+c")
    assert matcher.wait_mask(60)
    matcher._is_quick = True
    matcher.advance(*text.encode("a"))
    assert not matcher._is_working
    assert matcher.wait_forced(0)
    assert matcher.wait_mask(60)
    matcher._is_quick = False
    matcher.advance(*text.encode("b"))
    assert matcher.wait_mask(60)
    assert not matcher._is_quick


def test_its_work_is_counted_once(make: Callable[..., Matcher]) -> None:
    """The processor's time is told once, for whoever charges it."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    assert matcher.wait_mask(60)
    matcher.wait_mask(60)
    assert matcher.take_work_ns() > 0


def test_an_error_of_our_own_reaches_forks(make: Callable[..., Matcher]) -> None:
    """Whoever was about to begin at a place that is lost hears of it."""
    matcher = make(ConstraintKind.REGEX, "[ab]+")
    allowed(matcher)
    matcher.advance("no token")  # type: ignore[arg-type]
    fork = matcher.fork()

    assert fork.wait_mask(60)
    assert fork.problem
