"""One generation's way through a constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.grammars import compile_grammar
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.tokenizer import ModelTokenizer


@pytest.fixture
def text(tiny_folder: Path) -> ModelTokenizer:
    """The tiny model's tokenizer."""
    return ModelTokenizer(tiny_folder)


@pytest.fixture
def make(text: ModelTokenizer) -> Iterator[Callable[..., Matcher]]:
    """Make matchers of a constraint."""
    tokenizer = Vocabulary.of(text, 512).make_tokenizer()
    with ThreadPoolExecutor(1) as pool:
        yield lambda kind, source: Matcher(compile_grammar(tokenizer, kind, source), 512, pool)


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
