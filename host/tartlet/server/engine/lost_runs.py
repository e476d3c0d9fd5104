"""What runs had used whose connection is lost: it is kept until the front asks for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from tartlet.server.engine.messages import RunTotals
from tartlet_engine.api import RunClosed

MOST_KEPT = 10_000
"""Runs of which somebody may ask; of more, the oldest are forgotten."""
MOST_NAME_LEN = 100
"""Characters of a run's name that count."""


class LostRuns:
    """Runs of all connections, from the loss of theirs on. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: dict[int, str] = {}  # of those that the engine is closing
        self._totals: OrderedDict[str, RunTotals] = OrderedDict()  # by name

    def expect(self, run_id: int, name: str) -> None:
        """Take in that a run is about to be closed, with `tells_totals`."""
        with self._lock:
            self._names[run_id] = name[:MOST_NAME_LEN]

    def note(self, closed: RunClosed) -> bool:
        """Take in what a run had used; False if it was not expected."""
        with self._lock:
            name = self._names.pop(closed.run_id, None)
            if name is None:
                return False
            self._totals[name] = RunTotals(closed.prompt_tokens, closed.generated_tokens, closed.page_ns)
            while len(self._totals) > MOST_KEPT:
                self._totals.popitem(last=False)
            return True

    def take(self, names: Iterable[str]) -> dict[str, RunTotals]:
        """Tell what is known of these runs, and forget it."""
        with self._lock:
            return {name: self._totals.pop(name) for name in names if name in self._totals}
