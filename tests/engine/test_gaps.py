"""Gaps: positions are those of the tokens before anything was evicted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine import gaps as gaps_of
from tartlet_engine.gaps import Gaps


@given(st.data())
def test_positions_are_those_of_a_list(data: st.DataObject) -> None:
    """Whatever is evicted, cut and appended: each token keeps its position, and the next follows the last."""
    positions = list(range(data.draw(st.integers(1, 30))))
    gaps: Gaps = ()
    for _ in range(data.draw(st.integers(0, 6))):
        action = data.draw(st.sampled_from(("evict", "truncate", "append")))
        length = len(positions)
        if action == "evict" and length > 1:
            start = data.draw(st.integers(0, length - 1))
            end = data.draw(st.integers(start, length - 1))
            gaps = gaps_of.evicted(gaps, start, end)
            del positions[start:end]
        elif action == "truncate":
            length = data.draw(st.integers(0, length))
            if length < len(positions):
                gaps = gaps_of.truncated(gaps, length)
                del positions[length:]
        else:
            following = positions[-1] + 1 if positions else 0
            positions += range(following, following + data.draw(st.integers(1, 10)))
        start = data.draw(st.integers(0, len(positions)))
        end = data.draw(st.integers(start, len(positions)))

        assert list(gaps_of.positions(gaps, 0, len(positions))) == positions
        assert list(gaps_of.positions(gaps, start, end)) == positions[start:end]
        assert len(positions) + gaps_of.total(gaps) == (positions[-1] + 1 if positions else 0)
        assert [index for index, _ in gaps] == sorted({index for index, _ in gaps})
        assert all(0 <= index < len(positions) and num > 0 for index, num in gaps)
