"""What contexts keep of logits is bounded, and what is given up changes no token."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_engine import kept_logits
from tests.engine.conftest import VOCABULARY_SIZE

PROMPT = list(range(20, 28))


def test_equal_contexts_keep_so_many_rows(hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that flushes the same prompt again and again holds two pages, and not a row for each context."""
    monkeypatch.setattr(kept_logits, "MOST_KEPT_BYTES", 5 * VOCABULARY_SIZE * 4)
    driver = hash_engine()
    run = driver.open_run()
    contexts = [driver.create(run, PROMPT) for _ in range(20)]
    for context in contexts:
        driver.flush(context)
        driver.settle()
    kept = [context for context in contexts if driver.logits(context) is not None]
    assert driver.num_held == 2
    assert kept == contexts[-5:]

    generations = [driver.generate(context, max_tokens=2) for context in contexts]
    driver.settle()
    assert all(driver.tokens(generation) == hash_text(PROMPT, 2) for generation in generations)


def test_forks_share_a_row(hash_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that many forks share counts once."""
    monkeypatch.setattr(kept_logits, "MOST_KEPT_BYTES", 2 * VOCABULARY_SIZE * 4)
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.flush(context)
    driver.settle()
    forks = [driver.fork(context, len(PROMPT)) for _ in range(6)]
    driver.flush(driver.create(run, [50]))
    driver.settle()

    assert all(driver.logits(each) is not None for each in (context, *forks))


def test_what_an_eviction_has_left_stays(hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits that know of evicted tokens cannot be computed again."""
    monkeypatch.setattr(kept_logits, "MOST_KEPT_BYTES", 0)
    driver = hash_engine()
    run = driver.open_run()
    context = driver.create(run, PROMPT)
    driver.evict(context, 1, 3)
    driver.settle()
    for start in range(3):
        driver.flush(driver.create(run, [50 + start]))
        driver.settle()
    generation = driver.generate(context, max_tokens=1)
    driver.settle()

    assert driver.tokens(generation) == hash_text(PROMPT, 1)


@pytest.mark.parametrize("stepped", [False, True])
def test_a_context_whose_logits_are_wanted_goes_on(
    hash_engine: Any, hash_text: Any, monkeypatch: pytest.MonkeyPatch, stepped: bool
) -> None:
    """With room for none, generations, steps and passes end all the same."""
    monkeypatch.setattr(kept_logits, "MOST_KEPT_BYTES", 0)
    driver = hash_engine(num_pages=200)
    run = driver.open_run()
    generations = [driver.generate(driver.create(run, [40 + i, 50]), max_tokens=4, stepped=stepped) for i in range(4)]
    saving = driver.save(driver.create(run, PROMPT))
    driver.settle()
    for number, generation in enumerate(generations):
        found = [driver.next(generation).sampled for _ in range(4)] if stepped else driver.tokens(generation)
        assert found == hash_text([40 + number, 50], 4)
    assert driver.is_done(saving)
