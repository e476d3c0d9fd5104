"""The index of full pages: keys stand for all tokens before them, and nothing is found under an old key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.prefix_index import PrefixIndex, PrefixRoot, page_key

names = st.text(max_size=3)


@given(st.tuples(names, names, st.none() | names), st.tuples(names, names, st.none() | names))
def test_roots_differ_if_anything_in_them_differs(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    """Model, tenant and adapter cannot run into each other, and no adapter is not the one without a name."""
    assert (PrefixRoot(*first).key() == PrefixRoot(*second).key()) == (first == second)


def test_a_key_stands_for_all_tokens_before_it() -> None:
    """The same page after another page, or after another root, has another key."""
    roots = [PrefixRoot("m", tenant).key() for tenant in ("a", "b")]
    keys = {page_key(page_key(root, (first,)), (7, 8)) for root in roots for first in (1, 2)}

    assert len(keys) == 4
    assert page_key(roots[0], (1, 2**32 - 1)) == page_key(roots[0], [1, 2**32 - 1])


@pytest.fixture
def index() -> PrefixIndex:
    """Pages 1-2-3 in a chain, and 4 beside 3."""
    made = PrefixIndex()
    for key, page_id, parent in ((b"1", 1, None), (b"2", 2, 1), (b"3", 3, 2), (b"4", 4, 2)):
        made.insert(key, page_id, parent)
    return made


def test_what_is_below_a_page_goes_with_it(index: PrefixIndex) -> None:
    """A removed page takes along what cannot be found without it, and nothing else."""
    assert index.remove(3) == [3]
    assert (index.find(b"3"), index.find(b"4"), len(index)) == (None, 4, 3)
    assert sorted(index.remove(2)) == [2, 4]
    assert (index.find(b"4"), 4 in index, index.find(b"1")) == (None, False, 1)
    index.check_integrity()


def test_a_page_can_be_indexed_again_under_another_key(index: PrefixIndex) -> None:
    """It is found under the new key only, and below the new parent."""
    index.remove(3)
    index.insert(b"new", 3, 1)
    assert (index.find(b"3"), index.find(b"new")) == (None, 3)
    assert sorted(index.remove(1)) == [1, 2, 3, 4]

    assert len(index) == 0
    index.check_integrity()


def test_one_key_one_page(index: PrefixIndex) -> None:
    """A second page for a key, a second key for a page, and a parent that is not indexed are errors of ours."""
    for key, page_id, parent in ((b"1", 9, None), (b"9", 1, None)):
        with pytest.raises(AssertionError):
            index.insert(key, page_id, parent)
    with pytest.raises(KeyError):
        index.insert(b"9", 9, 8)

    index.check_integrity()
