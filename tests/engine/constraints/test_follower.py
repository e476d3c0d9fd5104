"""Going through one grammar, or a set of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.follower import Follower, GrammarFollower, TokenSetFollower
from tartlet_engine.constraints.grammars import MAX_CHOICES
from tartlet_engine.constraints.vocabulary import TokenIndex, words_of
from tartlet_engine.tokenizer import ModelTokenizer

from .conftest import VOCABULARY_SIZE, mask_of, state_of

Follow = Callable[..., GrammarFollower]


def test_masks_hold_what_may_come_next(follow: Follow, text: ModelTokenizer) -> None:
    """Exactly the tokens whose bytes can go on; the end only where the constraint may end."""
    plain = {i for i in range(3, 512) if text.table[i] and set(text.table[i]) <= set(b"ab")}
    follower = follow("[ab]+")
    assert mask_of(follower) == plain
    assert not follower.may_end
    follower.consume(text.encode("a"))
    assert mask_of(follower) == plain | set(text.eos_token_ids)
    assert follower.may_end


def test_at_its_end_only_the_end_is_allowed(follow: Follow, text: ModelTokenizer) -> None:
    """Then it is complete; a further token is not allowed, and can be gone back over."""
    follower = follow("ab")
    follower.consume(text.encode("ab"))
    assert state_of(follower) == (set(text.eos_token_ids), [], True, True, True)
    follower.consume(text.encode("a"))
    assert state_of(follower) == (set(), [], False, False, False)
    follower.rollback(1)
    assert state_of(follower) == (set(text.eos_token_ids), [], True, True, True)


def make_set(index: TokenIndex, *token_ids: int) -> TokenSetFollower:
    return TokenSetFollower(words_of(token_ids, VOCABULARY_SIZE), index.eos_words)


@pytest.mark.parametrize("kind", ["grammar", "set"])
def test_going_back_is_as_if_nothing_had_been(
    follow: Follow, index: TokenIndex, text: ModelTokenizer, kind: str
) -> None:
    """Over allowed tokens, over those that were not, over both at once; a copy goes its own way."""
    tokens = text.encode("abzzab")
    follower: Follower = follow("[ab]{1,8}") if kind == "grammar" else make_set(index, *text.encode("ab"))
    states = [state_of(follower)]
    for token_id in tokens:
        follower.consume([token_id])
        states.append(state_of(follower))
    copy = follower.copy()
    assert states[len(tokens)][0] == set()
    for num_back in (2, 1, len(tokens) - 3):
        follower.rollback(num_back)
        tokens = tokens[: len(tokens) - num_back]
        assert state_of(follower) == states[len(tokens)]
    copy.rollback(len(text.encode("abzzab")) - 1)
    assert state_of(copy) == states[1]


def test_a_set_allows_any_number_of_its_tokens(index: TokenIndex, text: ModelTokenizer) -> None:
    """And the end at any place; a set of nothing else is complete from the beginning."""
    follower = make_set(index, 7, 9)
    eos = set(text.eos_token_ids)
    follower.consume([7, 7, 9])
    assert state_of(follower) == ({7, 9} | eos, [], True, False, True)
    assert follower.count_allowed([9, 7, 8, 9]) == 2
    follower.consume([9, 8])
    assert mask_of(follower) == set()
    assert make_set(index, *eos).is_complete


def test_what_is_forced_may_be_spelled_otherwise(follow: Follow, text: ModelTokenizer) -> None:
    """The mask has the model's own way alone; all spellings are the tokens that the text begins with."""
    follower = follow("The quick")
    assert mask_of(follower) == {follower.forced()[0]}
    beginnings = {i for i in range(3, 512) if text.table[i] and b"The quick".startswith(text.table[i])}
    assert len(beginnings) > 1
    assert mask_of(follower, all_spellings=True) == beginnings


def test_as_many_choices_as_there_may_be(follow: Follow, text: ModelTokenizer) -> None:
    """4,096 texts, some of which begin others: each can be written to its end, and nothing else."""
    choices = [f"option {number}" for number in range(MAX_CHOICES - 1)] + ["option"]
    prototype = follow(json.dumps(choices), ConstraintKind.CHOICES)
    for choice in ("option", "option 1", "option 40", "option 4094"):
        follower = prototype.copy()
        follower.consume(text.encode(choice))
        assert follower.may_end, choice
    assert follower.is_complete
    for other in ("option 4095", "option 04", "optio"):
        follower = prototype.copy()
        follower.consume(text.encode(other))
        assert not follower.may_end, other
