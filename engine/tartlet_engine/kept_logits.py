"""Bounds the logits that contexts keep after their last token while nobody demands anything of them.

Equal contexts share pages but not logits, so what logits take is not bounded by pages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from tartlet_engine.sequence import Sequence

MOST_KEPT_BYTES = 1 << 28
"""Of all contexts together."""


def give_up_logits(sequences: Collection[Sequence], row_bytes: int) -> None:
    """Give up logits of the oldest contexts, where all keep too many: they are computed again when they are demanded.

    Those of contexts from which tokens were evicted stay, since their last token may have seen what is gone. Each has a
    page of its own at least, which takes more.

    Args:
        sequences: all contexts, the oldest first.
        row_bytes: that one context's logits take.

    Cost: one pass over all contexts if there are enough of them to keep too many.
    """
    most = MOST_KEPT_BYTES // row_bytes
    if len(sequences) <= most:
        return
    holders: defaultdict[int, list[Sequence]] = defaultdict(list)  # by row: forks share theirs
    for sequence in sequences:
        if sequence.logits is not None:
            holders[id(sequence.logits)].append(sequence)
    num_excess = len(holders) - most
    for sharing in holders.values():
        if num_excess <= 0:
            return
        if all(map(_can_give_up, sharing)):
            for sequence in sharing:
                sequence.logits = None
            num_excess -= 1


def _can_give_up(sequence: Sequence) -> bool:
    return not (sequence.has_demand or sequence.gaps or sequence.operation)
