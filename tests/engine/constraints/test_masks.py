"""Masks that programs make, and generations that are sampled under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tartlet_engine.api import ConstraintKind, ErrorCode, FinishReason, FreeMask, MakeMask, Speculation
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints import masks
from tartlet_engine.tokenizer import ModelTokenizer

PROMPT = list(range(20, 40))


def packed(*token_ids: int) -> bytes:
    return sum(1 << token_id for token_id in set(token_ids)).to_bytes(64, "little")


def make_mask(driver: Any, run: int, *token_ids: int, mask_id: int = 5000) -> int:
    driver.do(MakeMask(mask_id, run, packed(*token_ids)))
    return mask_id


def test_words_are_those_of_matchers(hash_engine: Any) -> None:
    """Bit `id % 32` of word `id // 32`, and nobody can write to them."""
    driver = hash_engine()
    run = driver.open_run()
    make_mask(driver, run, 0, 33, 511)
    words = driver.core.constraints.masks.get(driver.core._handler.accounts[run], 5000)

    assert words.dtype == np.uint32
    assert np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist() == [0, 33, 511]
    assert not words.flags.writeable


def test_masks_belong_to_their_run(hash_engine: Any) -> None:
    """Another run cannot use or free one; freed, it is gone."""
    driver = hash_engine()
    owner, other = driver.open_run(), driver.open_run()
    table, accounts = driver.core.constraints.masks, driver.core._handler.accounts
    make_mask(driver, owner, 1)
    driver.do(FreeMask(5000, other))
    assert table.get(accounts[owner], 5000).any()
    with pytest.raises(CommandError):
        table.get(accounts[other], 5000)
    driver.do(FreeMask(5000, owner))
    with pytest.raises(CommandError) as caught:
        table.get(accounts[owner], 5000)
    assert caught.value.error.code == ErrorCode.NOT_FOUND


def test_refusals(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id twice, a wrong size, an id outside the vocabulary, an unknown run, too many."""
    monkeypatch.setattr(masks, "MOST_OF_A_RUN", 2)
    driver = hash_engine()
    run = driver.open_run()
    make_mask(driver, run, 1, mask_id=1000)
    make_mask(driver, run, 1, mask_id=1000)
    driver.do(MakeMask(1001, run, bytes(63)), MakeMask(1002, 999, packed(1)))
    make_mask(driver, run, 2, mask_id=1003)
    make_mask(driver, run, 3, mask_id=1004)

    codes = {failed.failed_id: failed.error.code for failed in driver.failures}
    assert codes == {
        1000: ErrorCode.ALREADY_EXISTS,
        1001: ErrorCode.INVALID_ARGUMENT,
        1002: ErrorCode.NOT_FOUND,
        1004: ErrorCode.QUOTA_EXCEEDED,
    }


def test_bits_outside_the_vocabulary_are_refused(tiny_engine: Any) -> None:
    """A vocabulary that does not fill its last word has no ids there."""
    driver = tiny_engine()
    table = masks.MaskTable(40, driver.core._handler.accounts)
    run = driver.open_run()
    with pytest.raises(CommandError):
        table._make(MakeMask(1, run, (1 << 40).to_bytes(8, "little")), 0)
    table._make(MakeMask(1, run, (1 << 39).to_bytes(8, "little")), 0)


@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_a_generation_keeps_to_its_mask(tiny_engine: Any, temperature: float) -> None:
    """Every token is in it, at any temperature; neighbours are not concerned; freeing it does not end it."""
    driver = tiny_engine()
    run = driver.open_run()
    free = driver.generate(driver.create(run, PROMPT), max_tokens=30)
    driver.settle()
    mask = make_mask(driver, run, 40, 77, 401)
    masked = driver.generate(driver.create(run, PROMPT), max_tokens=30, mask_id=mask, temperature=temperature)
    beside = driver.generate(driver.create(run, PROMPT), max_tokens=30)
    driver.step(3)
    driver.do(FreeMask(mask, run))
    driver.settle()

    assert set(driver.tokens(masked)) <= {40, 77, 401}
    assert len(driver.tokens(masked)) == 30
    assert driver.tokens(beside) == driver.tokens(free)


def test_a_mask_and_a_constraint_hold_together(tiny_engine: Any, tiny_folder: Any) -> None:
    """The text is the constraint's, in tokens of the mask, forced ones too."""
    driver = tiny_engine()
    text = ModelTokenizer(tiny_folder)
    letters = [text.encode(letter)[0] for letter in "abcdThe quick"]
    run = driver.open_run()
    constraint = driver.compile(run, ConstraintKind.REGEX, "The quick [a-z]{5}")
    mask = make_mask(driver, run, *letters)
    generation = driver.generate(driver.create(run, PROMPT), constraint_id=constraint, mask_id=mask, max_tokens=50)
    driver.settle()

    assert set(driver.tokens(generation)) <= set(letters)
    assert driver.failures == []
    assert driver.text(generation).startswith("The quick ")
    assert driver.finished(generation).reason is FinishReason.COMPLETE


def test_a_mask_that_leaves_nothing_is_an_error(hash_engine: Any) -> None:
    """By itself at once, together with a constraint where it happens; both name it."""
    driver = hash_engine()
    run = driver.open_run()
    constraint = driver.compile(run, ConstraintKind.REGEX, "[ab]{3}")
    empty, other = make_mask(driver, run, mask_id=1000), make_mask(driver, run, 3, mask_id=1001)
    at_once = driver.generate(driver.create(run, PROMPT), mask_id=empty)
    later = driver.generate(driver.create(run, PROMPT), mask_id=other, constraint_id=constraint)
    unknown = driver.generate(driver.create(run, PROMPT), mask_id=77)
    driver.settle()

    assert driver.failure(at_once).code == ErrorCode.INVALID_ARGUMENT
    assert driver.failure(later).code == ErrorCode.INVALID_ARGUMENT
    assert "no token is allowed" in driver.failure(later).message
    assert driver.failure(unknown).code == ErrorCode.NOT_FOUND


def test_guessing_keeps_to_the_mask(tiny_engine: Any) -> None:
    """Under a mask, guessed tokens change nothing: wrong ones outside it are never kept."""
    driver = tiny_engine()
    run = driver.open_run()
    mask = make_mask(driver, run, 40, 77, 401)
    plain = driver.generate(driver.create(run, PROMPT), max_tokens=40, mask_id=mask, temperature=1.0, seed=3)
    driver.settle()
    tokens = driver.tokens(plain)
    misled = tuple(400 if number % 7 == 6 else token_id for number, token_id in enumerate(tokens))
    options = {"max_tokens": 40, "temperature": 1.0, "seed": 3}
    speculation = Speculation(expected_token_ids=misled)
    guessing = driver.generate(driver.create(run, PROMPT), mask_id=mask, speculation=speculation, **options)
    driver.settle()

    assert driver.tokens(guessing) == tokens
    assert driver.finished(guessing).usage.accepted_tokens > 0
