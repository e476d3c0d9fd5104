"""Where a run of tokens has stood before: an index over a text that grows. Pure Python."""

from __future__ import annotations

MAX_PLACES = 65_536
"""N-grams that one index remembers: of more, those that have not been seen for longest are forgotten."""


class NgramIndex:
    """Finds the last place at which some `size` tokens stood in a text, and something followed them.

    Cost: constant for a token; some 100 bytes for an n-gram.
    """

    def __init__(self, token_ids: list[int], size: int) -> None:
        """Index a list of tokens, which may grow at its end, but not change. Nothing is indexed yet."""
        self.token_ids = token_ids
        self._size = size
        self._places: dict[int, int] = {}  # by hash of an n-gram, the index of the token after it
        self._next_place = size  # the first that is not indexed yet

    def catch_up(self, most: int) -> None:
        """Index tokens that are not indexed yet, `most` of them at most."""
        end = min(len(self.token_ids), self._next_place + most)
        for place in range(self._next_place, end):
            key = self._key(self.token_ids[place - self._size : place])
            self._places.pop(key, None)  # so that it becomes the last that would be forgotten
            self._places[key] = place
            if len(self._places) > MAX_PLACES:
                del self._places[next(iter(self._places))]
        self._next_place = max(self._next_place, end)

    def find(self, text: list[int]) -> int | None:
        """Return where the indexed text goes on after the last tokens of `text`; None if they never stood in it."""
        last = text[-self._size :]
        place = self._places.get(self._key(last))
        if place is None or len(last) < self._size or self.token_ids[place - self._size : place] != last:
            return None
        return place

    @staticmethod
    def _key(token_ids: list[int]) -> int:
        return hash(tuple(token_ids))
