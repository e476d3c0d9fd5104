"""What all random actions need: something to act on, and a record of what was asked."""

from __future__ import annotations

import random

from tests.engine.conftest import Driver
from tests.engine.turmoil.ledger import Held, Ledger, Run, Stepping

MOST_CONTEXTS = 12
ROOM = 20  # positions that are left free: no action needs more


class Asking:
    """Chooses runs, contexts and tokens at random. A choice is None where there is nothing to choose from."""

    def __init__(self, driver: Driver, numbers: random.Random) -> None:
        """Begin with an engine that nobody has used; the numbers decide on everything."""
        self.driver = driver
        self.numbers = numbers
        self.history: list[str] = []
        self.ledger = Ledger()

    def note(self, *what: object) -> None:
        """Write down what is asked."""
        self.history.append(" ".join(map(str, what)))

    def tokens(self, count: int) -> list[int]:
        """Return tokens of few kinds, half of them the same every time: contexts have much in common."""
        return [self.numbers.randint(3, 6) if self.numbers.random() < 0.5 else 3 + i % 5 for i in range(count)]

    def hold(self, held: Held) -> None:
        """Note that there is a context."""
        self.ledger.contexts[held.id] = held

    @property
    def has_place(self) -> bool:
        """Whether there may be one more context."""
        return len(self.ledger.contexts) < MOST_CONTEXTS

    def has_room(self, held: Held) -> bool:
        """Tell whether any action fits behind a context's tokens."""
        return held.content.next_position + ROOM <= self.driver.info.context_len

    def a_running_run(self) -> Run | None:
        """Choose a run that no limit has stopped."""
        runs = [run for run in self.ledger.runs.values() if not run.is_stopped]
        return self.numbers.choice(runs) if runs else None

    def an_idle_context(self) -> Held | None:
        """Choose a context with which everything can be done."""
        idle = [held for held in self.ledger.contexts.values() if held.is_idle]
        return self.numbers.choice(idle) if idle else None

    def a_context_between_steps(self) -> Held | None:
        """Choose a context whose stepped generation waits for an answer."""
        stepping = [
            held
            for held in self.ledger.contexts.values()
            if isinstance(held.work, Stepping) and held.work.expected is None
        ]
        return self.numbers.choice(stepping) if stepping else None
