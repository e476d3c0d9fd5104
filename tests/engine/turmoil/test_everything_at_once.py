"""Everything at once, at random: whatever is asked of an engine in whatever order, all that comes of it is exact.

A failure tells the seed, what was asked and what came: `pytest -k 'everything and seed-17'` does it again. A seed of
a block is put into `SEEDS` for that. Threads read and write what is saved, so that a few seeds differ from run to run.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tartlet_engine import kept_logits, transfers
from tartlet_engine.costs import FixedCosts
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.stepping import rows
from tests.engine.conftest import MakeDriver
from tests.engine.turmoil.turmoil import Turmoil

SEEDS = [pytest.param(range(seed, seed + 1), id=f"seed-{seed}") for seed in range(80)]
BLOCKS = [
    pytest.param(
        range(first, first + 250), id=f"seeds-from-{first}", marks=(pytest.mark.stress, pytest.mark.timeout(3600))
    )
    for first in range(1_000, 11_000, 250)
]
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
SWAP_IS_DEAR = FixedCosts(seconds_per_byte=1.0, seconds_per_token=1e-6)


def turmoil_of(make: MakeDriver, numbers: random.Random, folder: Path, patches: pytest.MonkeyPatch) -> Turmoil:
    """Return a turmoil on an engine of a random size, with bounds so small that everything is short of something."""
    if numbers.random() < 0.5:  # of what is copied between steps, one page at a time
        for name in ("TRANSFER_S", "TRANSFER_SHARE", "PIECE_BYTES", "PIECE_BYTES_ALONE"):
            patches.setattr(transfers, name, 0)
    patches.setattr(kept_logits, "MOST_KEPT_BYTES", numbers.choice([0, 4096, 1 << 28]))
    patches.setattr(rows, "MOST_KEPT_BYTES", numbers.choice([0, 4096, 1 << 28]))
    has_cache = numbers.random() < 0.7
    driver = make(
        num_pages=numbers.choice([12, 16, 24, 40, 120]),
        page_size=numbers.choice([1, 2, 4, 4, 4, 7]),
        max_batch_tokens=numbers.choice([8, 9, 16, 40]),
        context_len=numbers.choice([60, 200, 1000]),
        prefix_cache=has_cache,
        saved=SavedContexts("hash", folder if numbers.random() < 0.5 else None),
        swap_pages=numbers.choice([0, 0, 3, 12, 1000]),
        costs=numbers.choice([FixedCosts(), SWAP_IS_CHEAP, SWAP_IS_DEAR]),
        runs_ahead=numbers.random() < 0.4,
    )
    assert driver.runner is not None
    driver.runner.is_batch_invariant = numbers.random() < 0.8
    return Turmoil(driver, numbers, breaks=numbers.random() < 0.2, publishes=has_cache)


@pytest.mark.parametrize("seeds", [*SEEDS, *BLOCKS])
def test_everything_at_once(
    hash_engine: MakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """Every token, row, position and failure is that which the commands alone say, and nothing is left at the end.

    Runs of three tenants, with limits, create, fork, cut, extend, evict from, save, open and free contexts, on which
    they generate, speculate, take steps and look ahead, with prefixes that come and go and a model that breaks.
    """
    for seed in seeds:
        numbers = random.Random(seed)
        with monkeypatch.context() as patches:
            turmoil = turmoil_of(hash_engine, numbers, tmp_path / str(seed), patches)
            try:
                turmoil.go(num_actions=numbers.randint(5, 120))
            except Exception as error:
                error.add_note("\n".join([f"seed {seed}:", *turmoil.history]))
                raise
            turmoil.driver.core.close()
