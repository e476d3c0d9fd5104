"""Constraints put together of others, against what their parts say by themselves."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable

import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.combination import AllOf, AnyOf
from tartlet_engine.constraints.follower import Follower, GrammarFollower, TokenSetFollower
from tartlet_engine.constraints.vocabulary import TokenIndex, words_of
from tartlet_engine.tokenizer import ModelTokenizer

from .conftest import VOCABULARY_SIZE, mask_of, state_of

Follow = Callable[..., GrammarFollower]
REGEXES = [
    "[a-m]{2,12}",
    "(ab|cd|ef){1,6}",
    "[abxyz]{1,6}",
    "a.*",
    "The (quick|slow) [a-z]{1,5}",
    "(The |the )?[a-z ]{1,9}",
]


def walk(
    follower: Follower, text: ModelTokenizer, choose: random.Random, most: int = 40
) -> tuple[str | None, list[int]]:
    """Write a text by what is forced and allowed; None if it comes to no end."""
    tokens: list[int] = []
    while len(tokens) < most:
        forced = follower.forced()
        allowed = sorted(mask_of(follower, all_spellings=True))
        if forced:
            assert not follower.may_end
            assert forced[0] in allowed
            tokens += forced
            follower.consume(forced)
            assert follower.problem is None
            continue
        if not allowed:
            return None, tokens
        token_id = choose.choice(allowed)
        assert (follower.may_end) == bool(set(allowed) & set(text.eos_token_ids))
        if token_id in text.eos_token_ids or (follower.may_end and choose.random() < 0.2):
            return text.decode(tokens), tokens
        assert follower.count_allowed([token_id]) == 1
        follower.consume([token_id])
        tokens.append(token_id)
        assert follower.problem is None
    return None, tokens


@pytest.mark.parametrize("pair", list(itertools.combinations(REGEXES, 2)), ids=str)
def test_what_is_written_is_what_the_combination_describes(
    follow: Follow, text: ModelTokenizer, pair: tuple[str, str]
) -> None:
    """All of two, any of two, and combinations of these, by Python's regular expressions."""
    one, other = pair
    num_written = 0
    for seed in range(12):
        choose = random.Random(seed)
        both, _ = walk(AllOf([follow(one), follow(other)]), text, choose)
        either, _ = walk(AnyOf([follow(one), follow(other)]), text, choose)
        nested, _ = walk(AnyOf([AllOf([follow(one), follow(other)]), follow("[0-9]{3}")]), text, choose)
        assert both is None or (re.fullmatch(one, both) and re.fullmatch(other, both)), both
        assert either is None or re.fullmatch(one, either) or re.fullmatch(other, either), either
        assert nested is None or re.fullmatch(f"(?=({one})$)({other})|[0-9]{{3}}", nested), nested
        num_written += sum(written is not None for written in (both, either, nested))
    assert num_written >= 12


@pytest.mark.parametrize("kind", [AllOf, AnyOf])
def test_masks_are_those_of_the_parts_put_together(
    follow: Follow, text: ModelTokenizer, kind: type[AllOf | AnyOf]
) -> None:
    """Intersection and union, at every place, those included where a part has died."""
    parts = [follow("[a-f]{1,9}"), follow("(ab|xy|cd){1,4}")]
    follower = kind(parts)
    for token_id in text.encode("abcdefab"):
        masks = [mask_of(part) for part in parts]
        assert mask_of(follower) == (masks[0] & masks[1] if kind is AllOf else masks[0] | masks[1])
        follower.consume([token_id])


@pytest.mark.parametrize("seed", range(8))
def test_going_back_is_as_if_nothing_had_been(follow: Follow, text: ModelTokenizer, seed: int) -> None:
    """After any moves it tells the same as one that was begun anew with the same tokens; parts that died live again."""
    choose = random.Random(seed)
    alphabet = [token_id for word in ("a", "b", "c", "x", "ab", "The", " ") for token_id in text.encode(word)]

    def begin() -> Follower:
        inner = AnyOf([follow("[abc]{1,20}"), follow("(ab|x){1,9}")])
        return AnyOf([AllOf([inner, follow("[a-z]{2,}")]), follow("The [a-z]+")])

    follower, tokens = begin(), list[int]()
    for _ in range(40):
        if tokens and choose.random() < 0.4:
            num_back = choose.randint(1, len(tokens))
            follower.rollback(num_back)
            del tokens[len(tokens) - num_back :]
        else:
            more = choose.choices(alphabet, k=choose.randint(1, 3))
            follower.consume(more)
            tokens += more
        if choose.random() < 0.2:
            follower = follower.copy()
        anew = begin()
        anew.consume(tokens)
        assert state_of(follower) == state_of(anew), tokens


def test_forced_tokens_of_one_part_are_offered_to_the_others(follow: Follow, text: ModelTokenizer) -> None:
    """All of: what one forces as far as the others allow it. Any of: only what all that are left force."""
    forced = text.encode("The quick")
    assert AllOf([follow("The quick (fox|ox)"), follow(".{5,}")]).forced()[: len(forced)] == forced
    assert AllOf([follow("The quick"), follow("xy")]).forced() == []
    either = AnyOf([follow("The quick"), follow("The slow")])
    assert either.forced() == text.encode("The")
    assert AnyOf([follow("The quick"), follow("The quick")]).forced() == forced
    assert AnyOf([follow("The quick"), follow("(The )?x?")]).forced() == []
    either.consume(text.encode("The s"))
    assert text.decode(either.forced()) == "low"


def test_a_set_of_tokens_chooses_the_spelling(follow: Follow, index: TokenIndex, text: ModelTokenizer) -> None:
    """Where a set does not have the token of the model's own way, the text is written in others."""
    letters = TokenSetFollower(
        words_of([text.encode(each)[0] for each in "ehTqu cik"], VOCABULARY_SIZE), index.eos_words
    )
    written, tokens = walk(AllOf([letters, follow("The quick")]), text, random.Random(1))
    assert written == "The quick"
    assert len(tokens) == len(written)


def test_a_schema_and_a_regex(follow: Follow, text: ModelTokenizer) -> None:
    """Kinds can be mixed: JSON of a schema that has a certain form besides."""
    schema = (
        '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}'
    )
    for seed in range(10):
        both = AllOf([follow(schema, ConstraintKind.JSON_SCHEMA), follow(r'\{"n": [1-9][0-9]{2}\}')])
        written, _ = walk(both, text, random.Random(seed))
        assert written is not None
        assert re.fullmatch(r'\{"n": [1-9][0-9]{2}\}', written)
