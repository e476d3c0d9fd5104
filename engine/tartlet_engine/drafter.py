"""What a generation is likely to write next, guessed from texts: its own context, and what the program expects.

A guess costs rows of a forward pass, which are wasted where it is wrong. So its length follows what comes of it, and
after wrong guesses the drafter rests, until its guesses would have been right for some tokens or for some steps. Pure
Python.
"""

from __future__ import annotations

from tartlet_engine.api import Speculation
from tartlet_engine.ngram_index import NgramIndex

FIRST_LENGTH = 4
"""Tokens of the first draft."""
UNTRIED = 2
"""Tokens of a draft from a text that has foretold none yet, at most: an n-gram may stand in both by chance."""
MOST_REST = 32
"""Steps without a draft after many that were wrong."""
TRUSTED = 4
"""Tokens in a row that the text in sight has foretold, after which there is a draft even in a rest."""
MOST_INDEXED = 1024
"""Tokens that are indexed in one step: about half a millisecond."""


class Drafter:
    """Drafts for one generation. On the engine's thread."""

    def __init__(self, speculation: Speculation, token_ids: list[int], prompt_len: int | None = None) -> None:
        """Draft what may follow.

        Args:
            speculation: which texts to draft from, and how much.
            token_ids: the list of the sequence, which grows as the generation goes on.
            prompt_len: tokens that were there when it began; None: all.
        """
        self._token_ids = token_ids
        self._own = NgramIndex(token_ids, speculation.ngram)
        self._expected = NgramIndex(list(speculation.expected_token_ids), speculation.ngram)
        self._max_length = speculation.max_draft
        self._length = min(FIRST_LENGTH, speculation.max_draft)
        # The text in sight, if there is one, and where it goes on. What is expected is so from the beginning.
        self._source: list[int] | None = self._expected.token_ids or None
        self._place = 0
        self._num_foretold = 0  # tokens in a row that it had right
        self._num_seen = len(token_ids) if prompt_len is None else prompt_len
        self._num_misses = 0  # drafts in a row without an accepted token
        self._rest = 0

    def draft(self, most: int) -> list[int]:
        """Return up to `most` tokens that may come next, or none. Call it once for each step.

        Cost: constant for each token of the sequence since the last call, and of the draft; see MOST_INDEXED.
        """
        self._catch_up()
        source = self._source
        if source is None or most <= 0:
            return []
        if self._rest > 0 and self._num_foretold < TRUSTED:
            self._rest -= 1
            return []
        length = min(self._length, most, UNTRIED if self._num_foretold == 0 else most)
        if source is not self._token_ids:
            return source[self._place : self._place + length]
        period = len(source) - self._place  # what is read beyond the end is the draft itself
        return [source[self._place + index % period] for index in range(length)]

    def note_accepted(self, num_drafted: int, num_accepted: int) -> None:
        """Take note of what came of a draft."""
        if num_accepted == 0:
            self._num_misses += 1
            self._length = max(1, self._length // 2)
            self._rest = min(MOST_REST, 2**self._num_misses - 1)
            self._num_foretold = 0
            return
        self._num_misses = self._rest = 0
        if num_accepted < num_drafted:
            self._length = min(self._max_length, num_accepted + 1)
        elif num_drafted >= min(self._length, UNTRIED):
            self._length = min(self._max_length, 2 * self._length)

    def _catch_up(self) -> None:
        """Take in the tokens that have come since the last call, and look for a text if there is none in sight."""
        for token_id in self._token_ids[self._num_seen :]:
            source = self._source
            if source is not None and self._place < len(source) and source[self._place] == token_id:
                self._place += 1
                self._num_foretold += 1
            else:
                self._source, self._num_foretold = None, 0
        self._num_seen = len(self._token_ids)
        self._expected.catch_up(MOST_INDEXED)
        self._own.catch_up(MOST_INDEXED)
        if self._source is not None and self._place == len(self._source):
            self._source = None
        if self._source is None:
            self._look_up()

    def _look_up(self) -> None:
        for index in (self._expected, self._own):
            if (place := index.find(self._token_ids)) is not None and place < len(index.token_ids):
                self._source, self._place = index.token_ids, place
                return
