"""Masks of a run, as the bindings handle them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.runtime.mask import MaskState, bits_of_tokens, bits_of_words
from tartlet.runtime.model import ModelHandle
from tartlet.wasm.host_function import Err


class Words:
    """The facts of a model of 100 tokens."""

    name = "words"
    vocabulary_size = 100


MODEL: Any = SimpleNamespace(
    info=Words, check_tokens=lambda tokens: ModelHandle.check_tokens(SimpleNamespace(info=Words), tokens)
)


@given(st.sets(st.integers(0, 99)))
def test_tokens_and_words_are_the_same_sets(tokens: set[int]) -> None:
    """Bit t is that of token t, however it is told."""
    bits = bits_of_tokens(MODEL, sorted(tokens, reverse=True))
    assert {token for token in range(200) if bits >> token & 1} == tokens
    assert bits_of_words(MODEL, [bits & (1 << 64) - 1, bits >> 64]) == bits


@pytest.mark.parametrize("words", [[0], [0, 0, 0], [0, 1 << 36]])
def test_words_are_those_of_the_vocabulary(words: list[int]) -> None:
    """As many as it needs, and no bit beyond it."""
    with pytest.raises(Err):
        bits_of_words(MODEL, words)


def test_the_engine_gets_it_when_it_is_used(bench: Any) -> None:
    """Once, whole; dropping it frees it there. One that is never used never leaves the host."""
    run = bench.new_run()
    unused = bench.call(lambda: MaskState(run, bench.model, 5))
    mask = bench.call(lambda: MaskState(run, bench.model, 5))
    engine_id = bench.call(lambda: mask.engine_id_for(bench.model))
    assert bench.call(lambda: mask.engine_id_for(bench.model)) == engine_id
    masks = bench.engine._core._state.masks
    bench.wait_until(lambda: masks.is_of(engine_id, run.engine_id))
    assert len(masks._run_ids) == 1
    bench.call(mask.drop)
    bench.call(unused.drop)
    bench.wait_until(lambda: not masks._run_ids)
    assert run.num_masks == 0


def test_a_mask_is_one_of_a_model(bench: Any) -> None:
    """Another model's tokens are other tokens."""
    run = bench.new_run()
    mask = bench.call(lambda: MaskState(run, bench.model, 5))
    with pytest.raises(Err):
        bench.call(lambda: mask.engine_id_for(MODEL))
    bench.call(mask.drop)
