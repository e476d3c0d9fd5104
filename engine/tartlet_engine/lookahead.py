"""A lookahead: tokens after a sequence's own that are computed provisionally, to be kept in part or not at all.

They are a line or a tree. Their keys and values lie in the sequence's pages behind those of its own tokens, but nobody
else ever finds or shares them, and whoever needs pages may have theirs: what is kept then is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

LAST_TOKEN = -1
"""As a row or a parent: the sequence's last own token."""


@dataclass(slots=True, eq=False)
class Lookahead:
    """Tokens that follow a sequence's last own one, and who wants to know what the model says of them.

    A row is the index of one of its tokens, or LAST_TOKEN.
    """

    token_ids: list[int]
    parents: list[int] | None  # of each token, the row that it follows, which is less than its own; None: a line
    positions: list[int]
    rows: AbstractSet[int]  # those whose logits are wanted
    # Called with rows, ascending, and their logits, float32[R, V], as they are computed: each row once. Must not keep
    # the logits themselves, which are those of a whole step.
    take_logits: Callable[[list[int], Tensor], None]
    then: Callable[[], None] | None = None  # called once, when everything is computed and every row has been taken
    weight: int = 0  # so many tokens of a step take about as long as what `take_logits` does with its rows
    operation_id: int | None = None  # who is told if it fails; None: nobody, or only its generation
    num_computed: int = 0  # tokens whose keys and values are in the pages; more than 0 only if all own tokens' are
    is_done: bool = False  # nothing of it is wanted any more, until it is kept or discarded
    num_charged: int = 0  # tokens that have been charged: those that are computed again are not
    first_untaken: int = LAST_TOKEN  # rows before this one have been taken

    @property
    def num_to_compute(self) -> int:
        """Tokens that are still to be computed."""
        return 0 if self.is_done else len(self.token_ids) - self.num_computed

    @property
    def tree_size(self) -> int:
        """Tokens of a tree that is still to be computed, all of them in one chunk; 0 for a line."""
        return 0 if self.parents is None else self.num_to_compute

    def rows_between(self, start: int, end: int) -> list[int]:
        """Return the rows `start <= i < end` whose logits are wanted and have not been taken, ascending."""
        return [row for row in range(max(start, self.first_untaken), end) if row in self.rows]

    def hand_over(self, rows: list[int], logits: Tensor) -> None:
        """Let the logits float32[R, V] of rows that have been computed be taken; LAST_TOKEN only if it is wanted."""
        if rows and rows[0] == LAST_TOKEN and not self.rows_between(LAST_TOKEN, LAST_TOKEN + 1):
            rows, logits = rows[1:], logits[1:]
        if rows:
            self.first_untaken = rows[-1] + 1
            self.take_logits(rows, logits)

    def note_computed(self, num_computed: int) -> int:
        """Take note that so many of the tokens are in the pages. Returns how many of them are so for the first time."""
        num_new = max(0, num_computed - self.num_charged)
        self.num_charged += num_new
        self.num_computed = num_computed
        return num_new

    def visible(self, num_own: int) -> NDArray[np.bool_]:
        """Tell what the rows of a chunk that holds the whole tree see of each other, themselves included.

        Args:
            num_own: rows of the sequence's own tokens that come before the tree in the chunk.

        Shape: bool[num_own + N, num_own + N] for a tree of N tokens; row `i` sees column `j` where it is True.
        """
        assert self.parents is not None, "a line needs no mask"
        size = num_own + len(self.token_ids)
        visible = np.tri(size, dtype=np.bool_)
        visible[num_own:, num_own:] = np.eye(len(self.token_ids), dtype=np.bool_)
        for row, parent in enumerate(self.parents):
            if parent != LAST_TOKEN:
                visible[num_own + row, num_own:] |= visible[num_own + parent, num_own:]
        return visible

    def follows(self, row: int, path: Sequence[int]) -> bool:
        """Tell whether the row can come next after those of a path, which begins behind the sequence's own tokens."""
        if not 0 <= row < len(self.token_ids):
            return False
        return self.parent(row) == (path[-1] if path else LAST_TOKEN)

    def parent(self, row: int) -> int:
        """Return the row that a token follows."""
        return row - 1 if self.parents is None else self.parents[row]

    def num_in_place(self, path: Sequence[int]) -> int:
        """Return how many tokens at the beginning of a path lie computed where they would lie without a lookahead."""
        num_in_place = 0
        while num_in_place < min(len(path), self.num_computed) and path[num_in_place] == num_in_place:
            num_in_place += 1
        return num_in_place


def tree_positions(next_position: int, parents: Sequence[int] | None, num_tokens: int) -> list[int]:
    """Return the positions of a lookahead's tokens: each comes right after what it follows.

    Args:
        next_position: of a token that follows the sequence's last own one.
        parents: as `Lookahead.parents`.
        num_tokens: of the lookahead.
    """
    if parents is None:
        return list(range(next_position, next_position + num_tokens))
    positions: list[int] = []
    for parent in parents:
        positions.append(next_position if parent == LAST_TOKEN else positions[parent] + 1)
    return positions


def simplified(parents: Sequence[int] | None) -> list[int] | None:
    """Return None for a tree that is a line, else its parents."""
    if parents is None or all(parent == row - 1 for row, parent in enumerate(parents)):
        return None
    return list(parents)
