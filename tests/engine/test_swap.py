"""The swap space: what is kept, for how many holders, and that nothing is left behind."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from tartlet_engine.swap import FIRST_SWAPPED_ID, SwapSpace, is_swapped


def page(value: int) -> torch.Tensor:
    return torch.full((8,), value, dtype=torch.uint8)


def test_contents_come_back_as_they_were() -> None:
    """Each swapped page has an id of its own, which no page of a pool has, and what was put there."""
    swap = SwapSpace(max_bytes=35, page_bytes=8)
    ids = [swap.add(page(value), 1) for value in range(4)]

    assert [swap.contents(page_id).tolist() for page_id in ids] == [[value] * 8 for value in range(4)]
    assert len(set(ids)) == 4
    assert all(page_id >= FIRST_SWAPPED_ID and is_swapped(page_id) for page_id in ids)
    assert (swap.num_pages, swap.num_free) == (4, 0)


def test_a_page_stays_until_its_last_holder_has_gone() -> None:
    """References are counted, whatever holders come and go, until the page is brought back or nobody holds it."""
    swap = SwapSpace(max_bytes=100, page_bytes=8)
    shared, brought_back = swap.add(page(1), 2), swap.add(page(2), 3)
    swap.share(shared)
    assert swap.is_shared(shared)
    swap.release(shared)
    swap.release(shared)
    assert not swap.is_shared(shared)
    swap.check_integrity(Counter({shared: 1, brought_back: 3, 7: 5}))
    swap.release(shared)

    assert swap.remove(brought_back) == 3
    assert swap.num_pages == 0


def test_what_does_not_fit_is_not_taken() -> None:
    """A swap space never takes more than its limit; one of no bytes takes nothing."""
    swap = SwapSpace(max_bytes=0, page_bytes=8)
    assert swap.num_free == 0
    with pytest.raises(AssertionError):
        swap.add(page(1), 1)


@pytest.mark.parametrize("wrong", [{}, {FIRST_SWAPPED_ID: 1}, {FIRST_SWAPPED_ID: 2, FIRST_SWAPPED_ID + 9: 1}])
def test_integrity_notices_what_does_not_add_up(wrong: dict[int, int]) -> None:
    """A page that nobody holds, a holder too few, and a holder of nothing are errors."""
    swap = SwapSpace(max_bytes=100, page_bytes=8)
    swap.add(page(1), 2)
    swap.check_integrity(Counter({FIRST_SWAPPED_ID: 2}))

    with pytest.raises(AssertionError):
        swap.check_integrity(Counter(wrong))
