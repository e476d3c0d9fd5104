from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tartlet.runtime.controlled_sequence import SequenceChunk
from tartlet_engine.api import Stepped

STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.lists(st.integers(97, 122), max_size=3), st.booleans()),
    max_size=20,
)


@given(STEPS)
def test_chunks_put_together_are_the_text(script: list[tuple[int, list[int], bool]]) -> None:
    """Whatever is added and taken back, and whenever it is read: a reader who follows the chunks has what there is.

    Each token is one character here, so that as many characters are taken back as tokens of the generation.
    """
    tokens: list[int] = []
    chunk = SequenceChunk()
    seen_text, seen_tokens = "", list[int]()
    for backtrack, added, is_read in [*script, (0, [], True)]:
        num_back = min(backtrack, len(tokens))  # more are taken from the prompt
        chunk.add(Stepped(1, tuple(added), bytes(added).decode(), None, backtrack, num_back), len(tokens))
        del tokens[len(tokens) - num_back :]
        tokens += added
        if is_read:
            seen_text = seen_text[: len(seen_text) - chunk.text_backtrack] + chunk.text
            del seen_tokens[len(seen_tokens) - chunk.token_backtrack :]
            seen_tokens += chunk.token_ids
            chunk = SequenceChunk()

    assert seen_tokens == tokens
    assert seen_text == bytes(tokens).decode()


def test_a_chunk_with_nothing_is_empty() -> None:
    """Taking back is something."""
    assert SequenceChunk().is_empty
    assert not SequenceChunk("a", [1]).is_empty
    chunk = SequenceChunk()
    chunk.add(Stepped(1, (), "", backtrack=1, text_backtrack=1), 5)
    assert not chunk.is_empty
    assert (chunk.text_backtrack, chunk.token_backtrack) == (1, 1)
