"""The bytes of tokens, for both kinds of vocabulary."""

from __future__ import annotations

import pytest

from tartlet_engine.token_table import TokenTable

SPECIAL = {"id": 3, "content": "<|end|>", "special": True}
TOOL = {"id": 4, "content": "<tool é>", "special": False}


def test_byte_level() -> None:
    """Characters stand for bytes, also for bytes that are no character by themselves; added tokens are their text."""
    vocabulary = {"Ġhi": 0, "ðŁ": 1, "Ċ": 2, "<|end|>": 3, "<tool é>": 4}
    table = TokenTable({"decoder": {"type": "ByteLevel"}, "added_tokens": [SPECIAL, TOOL]}, vocabulary, 6)

    assert [table[i] for i in range(6)] == [b" hi", b"\xf0\x9f", b"\n", b"<|end|>", "<tool é>".encode(), b""]
    assert table.special_ids == {3}
    assert not table.strips_first_space


def test_sentencepiece() -> None:
    """The mark is a space, byte tokens are bytes, and other characters are UTF-8."""
    vocabulary = {"▁hi▁": 0, "<0xF0>": 1, "é": 2, "<|end|>": 3, "<0x0g>": 4}
    parts = [{"type": "Replace"}, {"type": "ByteFallback"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    table = TokenTable({"decoder": {"type": "Sequence", "decoders": parts}, "added_tokens": [SPECIAL]}, vocabulary, 5)

    assert [table[i] for i in range(5)] == [b" hi ", b"\xf0", b"\xc3\xa9", b"<|end|>", b"<0x0g>"]
    assert table.strips_first_space


def test_refuses_other_kinds() -> None:
    """A vocabulary whose bytes we would get wrong is refused by the name of its decoder."""
    with pytest.raises(ValueError, match="WordPiece"):
        TokenTable({"decoder": {"type": "WordPiece"}}, {"##a": 0}, 1)
