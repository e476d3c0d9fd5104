"""Text in whole characters, whatever the tokens cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.detokenizer import Detokenizer
from tartlet_engine.tokenizer import ModelTokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> ModelTokenizer:
    return ModelTokenizer(tiny_folder)


def deltas(tokenizer: ModelTokenizer, token_ids: list[int]) -> list[str]:
    """What each token gives, and what the end gives."""
    detokenizer = Detokenizer(tokenizer.table, tokenizer.table.special_ids)
    return [*(detokenizer.feed(token_id) for token_id in token_ids), detokenizer.flush()]


def one_token_a_byte(tokenizer: ModelTokenizer, text: str) -> list[int]:
    """The tokens that spell a text byte by byte."""
    token_ids = {tokenizer.table[token_id]: token_id for token_id in range(511, -1, -1)}
    return [token_ids[bytes([byte])] for byte in text.encode()]


@given(st.lists(st.integers(3, 511)))
def test_random_tokens_give_the_whole_decode(tokenizer: ModelTokenizer, token_ids: list[int]) -> None:
    """The pieces put together are the decode of all tokens, also where the bytes are no characters."""
    assert "".join(deltas(tokenizer, token_ids)) == tokenizer.decode(token_ids)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufffd")))
def test_no_character_is_ever_split(tokenizer: ModelTokenizer, text: str) -> None:
    """Text that was cut into single bytes comes back in whole characters, without a replacement on the way."""
    pieces = deltas(tokenizer, one_token_a_byte(tokenizer, text))

    assert not any("\ufffd" in piece for piece in pieces)
    assert "".join(pieces) == text
    assert [len(piece) <= 1 for piece in pieces] == [True] * len(pieces)


def test_a_character_comes_with_its_last_token(tokenizer: ModelTokenizer) -> None:
    """Each byte of an emoji but the last gives nothing."""
    ids = one_token_a_byte(tokenizer, "a🍰b")

    assert deltas(tokenizer, ids) == ["a", "", "", "", "🍰", "b", ""]


def test_a_character_without_an_end(tokenizer: ModelTokenizer) -> None:
    """Its bytes come out as one U+FFFD as soon as it is clear that they are none, or at the end."""
    cake = one_token_a_byte(tokenizer, "🍰")[:3]

    assert deltas(tokenizer, [*cake, *tokenizer.encode("x")]) == ["", "", "", "\ufffdx", ""]
    assert deltas(tokenizer, cake) == ["", "", "", "\ufffd"]


def test_hidden_tokens_have_no_text(tokenizer: ModelTokenizer) -> None:
    """Special tokens are left out, and do not break a character that they stand in."""
    cake = one_token_a_byte(tokenizer, "🍰")

    assert "".join(deltas(tokenizer, [1, *cake[:2], 2, *cake[2:], 0])) == "🍰"
