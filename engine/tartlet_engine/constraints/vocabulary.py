"""A model's vocabulary as llguidance wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from llguidance import LLTokenizer

    from tartlet_engine.tokenizer import ModelTokenizer

Words = NDArray[np.uint32]
"""A set of tokens, uint32[ceil(V / 32)]: bit `id % 32` of word `id // 32`."""


def words_of(token_ids: Sequence[int], vocabulary_size: int) -> Words:
    """Return the set of some tokens, which must be in the vocabulary."""
    words = np.zeros(-(-vocabulary_size // 32), dtype=np.uint32)
    ids = np.asarray(token_ids, dtype=np.int64)
    np.bitwise_or.at(words, ids >> 5, np.left_shift(np.uint32(1), (ids & 31).astype(np.uint32)))
    return words


def holds(words: Words, token_id: int) -> bool:
    """Tell whether a set has a token."""
    return bool(int(words[token_id >> 5]) >> (token_id & 31) & 1)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens that constraints choose from.

    Attributes:
        tokens: the bytes of each id below the model's vocabulary size; empty for an id without a token.
        special_ids: tokens that are no text. No constraint but one that names them lets them through.
        eos_ids: tokens that end a generation: they are allowed where the constraint may end.
        encode: text to token ids, so that forced text is written in the model's own tokens.
    """

    tokens: Sequence[bytes]
    special_ids: Sequence[int]
    eos_ids: Sequence[int]
    encode: Callable[[str], list[int]]

    @classmethod
    def of(cls, text: ModelTokenizer, size: int) -> Vocabulary:
        """Take a model's text side, and how many ids its logits have; those without a token are never allowed."""
        tokens = [text.table[token_id] if token_id < len(text.table) else b"" for token_id in range(size)]
        special_ids = text.table.special_ids | set(text.eos_token_ids)
        return cls(
            tokens, sorted(token_id for token_id in special_ids if token_id < size), text.eos_token_ids, text.encode
        )

    def make_tokenizer(self) -> LLTokenizer:
        """Build the library's tokenizer: a prefix tree of all tokens. Cost: 0.1 s for 49,000 tokens."""
        from llguidance import LLTokenizer  # only when a constraint is asked for

        return LLTokenizer(cast(Any, _Wrapper(self)), n_vocab=len(self.tokens), eos_token=list(self.eos_ids))


_MOST_KEPT = 4096  # texts whose tokens are kept
_LONGEST_KEPT = 256  # characters


class TokenIndex:
    """Which tokens begin a text, and which end one. From any thread."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Look up tokens of a vocabulary."""
        self.size = len(vocabulary.tokens)
        self.eos_words = words_of(vocabulary.eos_ids, self.size)
        self._vocabulary = vocabulary
        self._ids: dict[bytes, int] | None = None  # of plain tokens; made when it is asked for
        self._longest = 0  # bytes

    def beginnings(self, text: bytes) -> list[int]:
        """Return the plain tokens that a text begins with, the shortest first. Cost: 10 ms, once; then 1 us."""
        if self._ids is None:
            special_ids = set(self._vocabulary.special_ids)
            tokens = enumerate(self._vocabulary.tokens)
            ids = {token: token_id for token_id, token in tokens if token and token_id not in special_ids}
            self._longest = max(map(len, ids), default=0)
            self._ids = ids
        ends = range(1, min(len(text), self._longest) + 1)
        return [self._ids[text[:end]] for end in ends if text[:end] in self._ids]


class _Wrapper:
    """What llguidance asks a tokenizer for."""

    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.bos_token_id = None
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = list(vocabulary.special_ids)
        self._encode = vocabulary.encode
        self._encode_again = lru_cache(_MOST_KEPT)(vocabulary.encode)

    def __call__(self, text: str) -> list[int]:
        """Write a text in tokens. What is forced is mostly the same few texts, such as names of fields."""
        return (self._encode_again if len(text) <= _LONGEST_KEPT else self._encode)(text)
