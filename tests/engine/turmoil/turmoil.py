"""Carries out random actions on an engine, and checks everything after each."""

from __future__ import annotations

import random
import time

from tests.engine.conftest import Driver
from tests.engine.turmoil.context_actions import ContextActions
from tests.engine.turmoil.events import Events
from tests.engine.turmoil.generation_actions import GenerationActions
from tests.engine.turmoil.ledger import Evicting, Generating, Opening, Passing, Stepping

ACTIONS = (
    *["create"] * 3,
    *["fork", "truncate", "append", "flush", "save", "open_saved"] * 2,
    *["evict"] * 3,
    *["generate", "speculate", "begin_steps", "forward", "end_forward"] * 2,
    *["answer"] * 4,
    *["fork_steps", "cancel", "free", "open_run", "close_run", "publish", "unpublish", "break_model", "settle"],
    *["step"] * 4,
)


class Turmoil(ContextActions, GenerationActions):
    """An engine with the hash model, and all that is asked of it."""

    def __init__(self, driver: Driver, numbers: random.Random, *, breaks: bool, publishes: bool) -> None:
        """Begin with an engine that nobody has used.

        Args:
            driver: of the engine.
            numbers: decide on everything.
            breaks: whether the model fails now and then.
            publishes: whether prefixes can be published.
        """
        super().__init__(driver, numbers)
        self.events = Events(driver, self.ledger, self.history)
        self.breaks = breaks
        self.actions = [name for name in ACTIONS if publishes or name != "publish"]

    def go(self, num_actions: int) -> None:
        """Carry out so many actions, then let everything end, and see that nothing is left."""
        self.open_run()
        for _ in range(num_actions):
            getattr(self, self.numbers.choice(self.actions))()
            self._wait_for_store()
            self.events.check()
        self.end_all_work()
        self.generate_everywhere()
        self.let_go()

    def end_all_work(self) -> None:
        """Let everything come to its end that does by itself, and end the rest."""
        self.settle()
        assert self.driver.runner is not None
        self.driver.runner.failures = 0
        assert self.ledger.with_work(Generating, Evicting, Opening) == []
        for held in self.ledger.with_work(Stepping):
            assert isinstance(held.work, Stepping)
            assert held.work.expected is None, "a step was answered and never made"
            self.cancel_work(held)
        for held in self.ledger.with_work(Passing):
            assert isinstance(held.work, Passing)
            assert held.work.is_done
            self.discard(held)
        self.settle()

    def generate_everywhere(self) -> None:
        """See that each context goes on as it must."""
        for held in list(self.ledger.contexts.values()):
            if held.is_idle and held.content.token_ids:
                self.start_generation(held, 3)
                self.settle()

    def let_go(self) -> None:
        """Close all runs, and see that nothing is held any more."""
        for run_id in list(self.ledger.runs):
            self.driver.close_run(run_id)
            self.ledger.close(run_id)
        for prefix_id in list(self.ledger.prefixes):
            self._unpublish(prefix_id)
        self.settle()
        stats = self.driver.core.stats()
        assert (stats.pages_held, stats.pages_swapped, stats.contexts) == (0, 0, 0)
        assert stats.pages_free + stats.pages_cached == self.driver.info.num_pages

    def step(self) -> None:
        """Carry out some steps."""
        count = self.numbers.randint(1, 4)
        self.note("step", count)
        for _ in range(count):
            self._wait_for_store()
            if self.driver.core.has_work:
                self.driver.step()

    def settle(self) -> None:
        """Carry out steps until nobody waits for anything."""
        self.note("settle")
        self.driver.settle()
        self.events.check()

    def break_model(self) -> None:
        """Let the next step fail, now and then."""
        if self.breaks and self.numbers.random() < 0.1:
            self.note("break_model")
            assert self.driver.runner is not None
            self.driver.runner.failures += 1
            self.events.may_break = True

    def _wait_for_store(self) -> None:
        """Wait for threads that save and open, so that what happens depends on little but the seed."""
        saves = self.driver.core.saves
        while saves.is_waiting and not saves.has_work:
            time.sleep(0.0002)
