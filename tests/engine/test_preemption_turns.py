"""Under lasting page pressure: what tenants get is what their weights say, and pages move once a turn, not more often.

Each history is fixed and has a number of steps, so that what goes in circles fails here and does not hang.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from tartlet_engine.api import Chunk, Finished
from tartlet_engine.costs import FixedCosts
from tartlet_engine.fairness import DECODE_COST, PREFILL_COST

NUM_PAGES, NUM_STEPS = 40, 300
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
COMPUTING_IS_CHEAP = FixedCosts(seconds_per_byte=1.0, seconds_per_token=0.0)


@dataclass(frozen=True)
class Loop:
    """A program that generates again and again, each time from a new prompt."""

    tenant: str
    prompt_len: int
    max_tokens: int
    weight: float = 1.0
    pause: int = 0  # steps between a generation and the next


@dataclass
class History:
    """What came of some loops: what each tenant used, and what it took."""

    used: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # at the costs of tokens, by its weight
    num_ended: int = 0
    num_preemptions: int = 0
    longest_wait: int = 0  # steps from one token of a generation to the next, or to its first


def run(driver: Any, loops: list[Loop]) -> History:
    """Carry out NUM_STEPS steps, in which all loops ask for something as soon as they may."""
    history, prompts = History(), itertools.count()
    runs = {loop.tenant: driver.open_run(tenant=loop.tenant, weight=loop.weight) for loop in loops}
    running: dict[int, tuple[int, int]] = {}  # generation -> number of its loop, context
    moved: dict[int, int] = {}  # generation -> step of its last token, or in which it began
    begins = [0] * len(loops)
    for step in range(NUM_STEPS):
        busy = {number for number, _ in running.values()}
        for number, loop in enumerate(loops):
            if number not in busy and step >= begins[number]:
                salt = next(prompts)
                prompt = [3 + (31 * salt + i * i) % 500 for i in range(loop.prompt_len)]
                context = driver.create(runs[loop.tenant], prompt)
                generation = driver.generate(context, max_tokens=loop.max_tokens)
                running[generation], moved[generation] = (number, context), step
        driver.step()
        for event in driver.events:
            loop = loops[running[event.generation_id][0]]
            history.longest_wait = max(history.longest_wait, step - moved[event.generation_id])
            moved[event.generation_id] = step
            if isinstance(event, Chunk):
                history.used[loop.tenant] += DECODE_COST * len(event.token_ids) / loop.weight
            else:
                assert isinstance(event, Finished)
                history.used[loop.tenant] += PREFILL_COST * loop.prompt_len / loop.weight
                history.num_ended += 1
                number, context = running.pop(event.generation_id)
                begins[number] = step + 1 + loop.pause
                driver.free(context)
        driver.events.clear()
    history.longest_wait = max(history.longest_wait, *(NUM_STEPS - moved[generation] for generation in running))
    history.num_preemptions = driver.core.stats().preemptions
    return history


MIXES = {
    "one within its share, one beyond": [Loop("small", 20, 60), Loop("large", 100, 56)],
    "both beyond": [Loop("one", 100, 50), Loop("two", 100, 50)],
    "three beyond": [Loop(tenant, 100, 40) for tenant in "abc"],
    "small, middle and large": [Loop("small", 20, 30), Loop("middle", 50, 40), Loop("large", 110, 40)],
    "the small one weighs more": [Loop("small", 50, 100, weight=3.0), Loop("large", 110, 30)],
    "the large one weighs more": [Loop("small", 50, 100), Loop("large", 110, 30, weight=3.0)],
    "a flood that comes and goes": [
        *[Loop("flood", 20, 20, pause=pause) for pause in range(5)],
        Loop("large", 120, 30),
    ],
    "short prompts without end": [Loop("small", 40, 1), Loop("small", 40, 1), Loop("large", 120, 30)],
}


@pytest.mark.parametrize("max_batch_tokens", [16, 64])
@pytest.mark.parametrize("costs", [SWAP_IS_CHEAP, COMPUTING_IS_CHEAP], ids=["swapped", "recomputed"])
@pytest.mark.parametrize("mix", MIXES)
def test_tenants_get_what_they_weigh_in_turns(
    hash_engine: Any, mix: str, costs: FixedCosts, max_batch_tokens: int
) -> None:
    """Nobody is behind others by more than two turns and a prompt, and nobody starves.

    Who is set aside gave way to a turn, or to another demand, and with a tenant all that it runs may be.
    """
    loops = MIXES[mix]
    driver = hash_engine(num_pages=NUM_PAGES, swap_pages=500, costs=costs, max_batch_tokens=max_batch_tokens)
    history = run(driver, loops)
    turn = DECODE_COST * max_batch_tokens
    prompt = max(PREFILL_COST * loop.prompt_len / loop.weight for loop in loops)

    assert max(history.used.values()) - min(history.used.values()) <= 2 * turn + prompt, history
    num_turns = sum(driver.core._shares.tenants[tenant].counter for tenant in history.used) / turn
    most_loops = max(Counter(loop.tenant for loop in loops).values())
    assert history.num_preemptions <= num_turns * most_loops + history.num_ended, history
    assert history.longest_wait <= len(loops) * (2 * turn + prompt), history


@pytest.mark.parametrize("costs", [SWAP_IS_CHEAP, COMPUTING_IS_CHEAP], ids=["swapped", "recomputed"])
def test_an_older_generation_within_its_share_gets_a_token_in_every_step(hash_engine: Any, costs: FixedCosts) -> None:
    """It came first, and is charged less than a flood: nothing is taken from it, whatever comes after it."""
    driver = hash_engine(num_pages=NUM_PAGES, swap_pages=500, costs=costs, max_batch_tokens=64)
    polite, flood = (driver.open_run(tenant=tenant) for tenant in ("polite", "flood"))
    older = driver.generate(driver.create(polite, range(30)), max_tokens=40)
    driver.step()
    for base in range(8):
        driver.generate(driver.create(flood, range(100 + base, 140 + base)), max_tokens=25)
    for num_tokens in range(2, 41):
        driver.step()
        assert len(driver.tokens(older)) == num_tokens

    assert driver.core.stats().preemptions > 0


def test_within_a_tenant_the_younger_are_set_aside(hash_engine: Any) -> None:
    """All outgrow the pool together: they end in the order in which they began, and are set aside but a few times."""
    driver = hash_engine(num_pages=NUM_PAGES, swap_pages=500, costs=SWAP_IS_CHEAP, max_batch_tokens=64)
    run_id = driver.open_run()
    generations = [driver.generate(driver.create(run_id, range(i, i + 30)), max_tokens=60) for i in range(5)]
    ended: list[int] = []
    for _ in range(5 * 60):
        driver.step()
        ended += [event.generation_id for event in driver.events if isinstance(event, Finished)]
        driver.events.clear()
        if len(ended) == len(generations):
            break

    assert ended == generations
    assert driver.core.stats().preemptions <= 2 * len(generations)
