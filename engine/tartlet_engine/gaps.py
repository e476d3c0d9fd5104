"""Gaps in a sequence's positions: where tokens were evicted. Pure functions.

A gap is an index and a number: before the token of that index so many positions are left out. Token ids, slots and
lengths count the tokens that are there; only positions count the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Gaps = tuple[tuple[int, int], ...]  # by index, each index once, 0 <= index < number of tokens


def total(gaps: Gaps) -> int:
    """Return how many positions are left out."""
    return sum(num for _, num in gaps)


def positions(gaps: Gaps, start: int, end: int) -> Sequence[int]:
    """Return the positions of the tokens `start <= i < end`."""
    if not gaps:
        return range(start, end)
    found: list[int] = []
    offset = 0
    for index, num in (*gaps, (end, 0)):
        first = start + len(found)
        found.extend(range(first + offset, max(first, min(index, end)) + offset))
        offset += num
    return found


def evicted(gaps: Gaps, start: int, end: int) -> Gaps:
    """Return the gaps after the tokens `start <= i < end` are gone; later ones, whose index shrinks, stay."""
    num_tokens = end - start
    if num_tokens == 0:
        return gaps
    merged = num_tokens + sum(num for index, num in gaps if start <= index <= end)
    before: Iterable[tuple[int, int]] = (gap for gap in gaps if gap[0] < start)
    after: Iterable[tuple[int, int]] = ((index - num_tokens, num) for index, num in gaps if index > end)
    return (*before, (start, merged), *after)


def truncated(gaps: Gaps, length: int) -> Gaps:
    """Return the gaps among the first `length` tokens: a gap goes with the token that it is before."""
    return tuple(gap for gap in gaps if gap[0] < length)
