"""Incremental detokenizing: from tokens, as they come, to text in whole characters."""

from __future__ import annotations

import codecs
from collections.abc import Set

from tartlet_engine.token_table import TokenTable


class Detokenizer:
    """Turns the tokens of one generation into text.

    A character that is split over tokens comes with its last one. The pieces put together are exactly the text of all
    the tokens; bytes that are not UTF-8 come out as U+FFFD.

    Args:
        table: the model's tokens.
        hidden_ids: tokens that have no text here: the special ones, and those that end a generation.

    Cost: under 1 us a token. Thread: one at a time.
    """

    def __init__(self, table: TokenTable, hidden_ids: Set[int]) -> None:
        self._table = table
        self._hidden_ids = hidden_ids
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token_id: int) -> str:
        """Take the next token, and return the characters that it completes, which may be none."""
        if token_id in self._hidden_ids:
            return ""
        return self._decoder.decode(self._table[token_id])

    def copy(self) -> Detokenizer:
        """Return one that is as far as this one, and goes on by itself."""
        other = Detokenizer(self._table, self._hidden_ids)
        other.state = self.state
        return other

    @property
    def state(self) -> tuple[bytes, int]:
        """What is held back of an incomplete character, to go back to."""
        return self._decoder.getstate()

    @state.setter
    def state(self, state: tuple[bytes, int]) -> None:
        self._decoder.setstate(state)

    def flush(self) -> str:
        """Return what is held back of an incomplete character, as U+FFFD. Nothing may be fed afterwards."""
        return self._decoder.decode(b"", final=True)
