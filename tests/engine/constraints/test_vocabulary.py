"""The vocabulary as the library sees it."""

from __future__ import annotations

from pathlib import Path

from tartlet_engine.constraints.vocabulary import Vocabulary
from tartlet_engine.tokenizer import ModelTokenizer


def test_tokens_are_those_of_the_model(tiny_folder: Path) -> None:
    """The library has as many ids as the logits, the bytes of every plain token, and knows the special ones."""
    text = ModelTokenizer(tiny_folder)
    vocabulary = Vocabulary.of(text, 520)
    tokenizer = vocabulary.make_tokenizer()

    assert tokenizer.vocab_size == len(vocabulary.tokens) == 520
    assert tokenizer.eos_tokens == list(text.eos_token_ids)
    assert all(tokenizer.is_special_token(token_id) for token_id in text.table.special_ids)
    # The byte 0xff marks special tokens in the library; it stands in no UTF-8.
    hidden = {*text.table.special_ids, *(i for i in range(512) if text.table[i] in (b"", b"\xff"))}
    plain = [token_id for token_id in range(512) if token_id not in hidden]
    assert all(tokenizer.decode_bytes([token_id]) == text.table[token_id] for token_id in plain)


def test_texts_become_the_models_tokens(tiny_folder: Path) -> None:
    """A text is written in the tokens that the model's own tokenizer writes."""
    text = ModelTokenizer(tiny_folder)
    tokenizer = Vocabulary.of(text, 512).make_tokenizer()
    sample = "The quick brown fox, crème brûlée 🍰"

    assert tokenizer.tokenize_str(sample) == text.encode(sample)
