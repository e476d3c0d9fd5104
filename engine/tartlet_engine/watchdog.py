"""Notices that the engine steps and gets nowhere, says who waits for what, and does not let it go on for ever."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence

_log = logging.getLogger("tartlet_engine")

# After so many steps without progress it is told, and after so many it ends. One is one too many already: the scheduler
# lets somebody go on in every step, and fails whoever cannot.
WARN_STEPS = 10
END_STEPS = 1000
# Of those that wait, so many are named.
_MAX_NAMED = 10


class NoProgressError(Exception):
    """There are demands, but steps do not bring them nearer to their end."""


class Watchdog:
    """Counts steps without progress."""

    def __init__(self, pool: PagePool) -> None:
        """Watch an engine with these pages."""
        self._pool = pool
        self._num_idle_steps = 0

    def note_step(self, has_progressed: bool, sequences: Iterable[Sequence]) -> None:
        """Take note of a step, after which these sequences have demands.

        Raises:
            NoProgressError: it has been too many steps without progress.
        """
        self._num_idle_steps = 0 if has_progressed else self._num_idle_steps + 1
        if self._num_idle_steps not in (WARN_STEPS, END_STEPS):
            return
        waits = [self._describe(sequence) for sequence in sequences]
        named = "; ".join(waits[:_MAX_NAMED]) + (f"; {len(waits) - _MAX_NAMED} more" if len(waits) > _MAX_NAMED else "")
        _log.warning("waiting, no progress: steps=%d %s", self._num_idle_steps, named)
        if self._num_idle_steps == END_STEPS:
            self._num_idle_steps = 0
            raise NoProgressError(f"no progress in {END_STEPS} steps: {named}")

    def _describe(self, sequence: Sequence) -> str:
        """Who waits for what."""
        name = f"run={sequence.account.run_id} context={sequence.context_id}"
        if sequence.link is not None:
            return f"{name} waits for context={sequence.link.source.context_id}"
        if sequence.is_waiting:
            start, end = sequence.num_filled, sequence.target_slots
            need = sequence.page_table.num_swapped + sequence.page_table.num_new_pages(start, end)
            return f"{name} waits for pages: need={need} available={self._pool.num_available}"
        return f"{name} has {sequence.num_to_compute} tokens to compute and waits for nothing"
