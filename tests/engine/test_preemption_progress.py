"""Under page pressure that never ends: every demand comes to its end, however many others come after it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tartlet_engine.api import Done, Finished
from tartlet_engine.costs import FixedCosts

HashText = Callable[[Sequence[int], int], list[int]]

PAGE_SIZE = 4
MAX_BATCH_TOKENS = 11
MAX_NEW_TOKENS = 12
MOST_ROUNDS = (
    4  # in which every loop's largest demand could be carried out alone; tenants of little weight wait longest
)
SWAP_IS_CHEAP = FixedCosts(seconds_per_byte=0.0, seconds_per_token=1.0)
COMPUTING_IS_CHEAP = FixedCosts(seconds_per_byte=1.0, seconds_per_token=0.0)


class Loops:
    """Programs that ask for the next thing as soon as they have got the last, each on a context of its own.

    Some begin anew each time and some go on in the same context; some flush first, and some are cancelled.
    """

    def __init__(self, driver: Any, numbers: random.Random, num_loops: int, num_tenants: int) -> None:
        self.driver = driver
        self.numbers = numbers
        self.runs = [
            driver.open_run(tenant=f"t{number}", weight=numbers.choice([0.5, 1.0, 4.0]))
            for number in range(num_tenants)
        ]
        self.run_of = [self.runs[number % num_tenants] for number in range(num_loops)]
        self.contexts: list[tuple[int, list[int]] | None] = [None] * num_loops
        self.waiting: dict[int, tuple[int, int]] = {}  # demand -> loop, the step that it began in
        self.longest_wait = 0
        self.num_ended = 0

    def begin(self, loop: int, step: int) -> None:
        """Let a loop ask for something new."""
        numbers, driver = self.numbers, self.driver
        most = driver.info.num_pages * PAGE_SIZE
        held = self.contexts[loop]
        if held is None or len(held[1]) + MAX_NEW_TOKENS > most or numbers.random() < 0.5:
            if held is not None:
                driver.free(held[0])
            tokens = [numbers.randrange(500) for _ in range(numbers.randint(1, most - MAX_NEW_TOKENS))]
            held = driver.create(self.run_of[loop], tokens), tokens
        self.contexts[loop] = held
        if numbers.random() < 0.2:
            demand = driver.flush(held[0])
        else:
            demand = driver.generate(held[0], max_tokens=numbers.randint(1, MAX_NEW_TOKENS))
        self.waiting[demand] = loop, step

    def take_up(self, step: int, hash_text: HashText) -> None:
        """Take up what has ended, and check it."""
        for event in self.driver.events:
            if isinstance(event, Finished | Done):
                demand = event.generation_id if isinstance(event, Finished) else event.operation_id
                loop, began = self.waiting.pop(demand)
                self.longest_wait = max(self.longest_wait, step - began)
                self.num_ended += 1
                held = self.contexts[loop]
                assert held is not None
                tokens = self.driver.tokens(demand)
                assert tokens == hash_text(held[1], len(tokens))
                self.contexts[loop] = held[0], held[1] + tokens
        self.driver.events[:] = [e for e in self.driver.events if getattr(e, "generation_id", None) in self.waiting]

    def step(self, step: int, hash_text: HashText) -> None:
        """Let all who have nothing ask for something, cancel now and then, and carry out a step."""
        for loop in set(range(len(self.contexts))) - {loop for loop, _ in self.waiting.values()}:
            self.begin(loop, step)
        if self.numbers.random() < 0.03:
            self.driver.cancel(self.numbers.choice(list(self.waiting)))
        self.driver.step()
        self.driver.core.check_integrity()
        assert self.driver.failures == []
        self.take_up(step, hash_text)


def test_every_demand_ends_while_others_keep_coming(hash_engine: Any, hash_text: HashText) -> None:
    """No demand waits longer than as many steps as all would need one after the other, several times over.

    Whatever is swapped or computed again, with weights, cancels, and contexts as large as the whole pool.
    """
    preemptions: list[int] = []

    # A failure is told of as it is found: the histories of those that would be smaller take long, too.
    @settings(max_examples=25, deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
    @given(
        seed=st.integers(0, 2**32),
        num_pages=st.integers(5, 14),
        num_loops=st.integers(2, 7),
        num_tenants=st.integers(1, 4),
        swap_pages=st.sampled_from([0, 3, 500]),
        costs=st.sampled_from([SWAP_IS_CHEAP, COMPUTING_IS_CHEAP]),
        has_cache=st.booleans(),
        runs_ahead=st.booleans(),
    )
    def check(
        seed: int, num_pages: int, num_loops: int, num_tenants: int, swap_pages: int, costs: FixedCosts, **options: bool
    ) -> None:
        driver = hash_engine(
            num_pages=num_pages,
            page_size=PAGE_SIZE,
            max_batch_tokens=MAX_BATCH_TOKENS,
            swap_pages=swap_pages,
            costs=costs,
            prefix_cache=options["has_cache"],
            runs_ahead=options["runs_ahead"],
        )
        loops = Loops(driver, random.Random(seed), num_loops, num_tenants)
        alone = -(-num_pages * PAGE_SIZE // MAX_BATCH_TOKENS) + MAX_NEW_TOKENS  # steps of the largest demand
        num_steps = 6 * alone * num_loops
        for step in range(num_steps):
            loops.step(step, hash_text)
            waits = [loops.longest_wait, *(step - began for _, began in loops.waiting.values())]
            assert max(waits) <= MOST_ROUNDS * alone * num_loops, f"no end after {max(waits)} steps"
        assert loops.num_ended * 3 * alone >= num_steps
        preemptions.append(driver.core.stats().preemptions)
        for run in loops.runs:
            driver.close_run(run)
        stats = driver.core.stats()
        assert (stats.pages_held, stats.pages_swapped, stats.contexts) == (0, 0, 0)

    check()
    assert sum(preemptions) > 100
