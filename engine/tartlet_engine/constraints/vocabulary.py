"""A model's vocabulary as llguidance wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from llguidance import LLTokenizer

    from tartlet_engine.tokenizer import ModelTokenizer


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


class _Wrapper:
    """What llguidance asks a tokenizer for."""

    is_tokenizer_wrapper = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.bos_token_id = None
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = list(vocabulary.special_ids)
        self._encode = vocabulary.encode

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)
