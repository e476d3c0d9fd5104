"""What an eviction keeps moves into new pages, some between two steps: a `transfers.Transfer`.

The context keeps its pages until all has been copied, so that forks which are made meanwhile have all of its tokens.
The new pages are held by a shadow of it: a context like any other, by the operation's id, that goes away with its run.
They do not count for the run's limit, since it holds them only while the old ones are there.
"""

from __future__ import annotations

from collections.abc import Callable

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import Done, EvictContext
from tartlet_engine.contexts import EVICTED, ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.sequence import Sequence


class Move:
    """One eviction whose tokens are all computed. On the engine's thread."""

    def __init__(
        self,
        command: EvictContext,
        sequence: Sequence,
        runner: ModelRunner,
        contexts: ContextTable,
        demands: Demands,
        preemption: Preemption,
        page_bytes: int,
        on_exhausted: Callable[[EvictContext, Sequence], None],
    ) -> None:
        """Begin with nothing copied; the context is busy from now on.

        Args:
            command: what is evicted.
            sequence: from which.
            runner: moves keys and values.
            contexts: where the shadow is.
            demands: where the end is told.
            preemption: makes room for what moves.
            page_bytes: what a page takes.
            on_exhausted: called instead of the end, with nothing evicted, if there are too few pages now.
        """
        self.operation_id = command.operation_id
        self.sequence = sequence
        self._command = command
        self._runner = runner
        self._contexts = contexts
        self._demands = demands
        self._preemption = preemption
        self._page_bytes = page_bytes
        self._on_exhausted = on_exhausted
        self._shadow: Sequence | None = None
        self._num_moved = 0  # pages of it that have been written
        sequence.operation = EVICTED

    @property
    def sequences(self) -> list[Sequence]:
        """The context, and its shadow once there is one."""
        return [self.sequence] if self._shadow is None else [self.sequence, self._shadow]

    def copy_some(self, max_bytes: int) -> bool:
        """Bring back pages that are swapped, then fill new ones."""
        if self.sequence.account.is_stopped:
            self.give_up()
            return True
        try:
            return self._move_some(max(1, max_bytes // self._page_bytes))
        except OutOfPagesError:
            self.give_up()
            self._on_exhausted(self._command, self.sequence)
        except RunLimitError as breach:
            self.give_up()
            self._demands.stop_run(breach)
        return True

    def give_up(self) -> None:
        """Leave the context as it was."""
        self._free_shadow()
        self.sequence.operation = None

    def _move_some(self, max_pages: int) -> bool:
        table, start, end = self.sequence.page_table, self._command.start, self._command.end
        if num_swapped := min(max_pages, table.num_swapped):
            self._preemption.take_from_idle(num_swapped)
            self._preemption.bring_back(self.sequence, num_swapped)
            return False
        num_tokens, size = len(self.sequence.token_ids), table.page_size
        first, last, num_new = table.pages_to_evict(start, end, num_tokens)
        shadow = self._shadow or self._make_shadow(first)
        if num_pages := min(max_pages, num_new - self._num_moved):
            first_target = (first + self._num_moved) * size
            targets = range(first_target, min(num_tokens - (end - start), first_target + num_pages * size))
            self._preemption.take_from_idle(num_pages)
            shadow.page_table.reserve(targets.start, targets.stop)
            self._num_moved += num_pages
            shadow.account.num_passing_pages += num_pages
            self._runner.move_slots(table.moves_to(shadow.page_table, targets, start, end))
        if self._num_moved < num_new:
            return False
        shadow.account.require_pages(num_new - shadow.account.num_held_once(table.page_ids[first:last]))
        shadow.page_table.hold_found(first + num_new, table.page_ids[last:])
        self.sequence.page_table, shadow.page_table = shadow.page_table, table
        self.sequence.drop_evicted(start, end)
        self.give_up()  # of what is in the shadow now: the old pages
        self._demands.events.append(Done(self.operation_id))
        return True

    def _make_shadow(self, num_kept_pages: int) -> Sequence:
        """Make a context that holds the pages before the gap."""
        self._contexts.create(self.operation_id, self.sequence.account, self.sequence.adapter)
        self._shadow = self._contexts.get(self.operation_id)
        self._shadow.operation = EVICTED
        self._shadow.page_table.share_prefix(
            self.sequence.page_table, num_kept_pages * self.sequence.page_table.page_size
        )
        return self._shadow

    def _free_shadow(self) -> None:
        shadow, self._shadow = self._shadow, None
        if shadow is not None:
            shadow.account.num_passing_pages -= self._num_moved
            self._num_moved = 0
            if self._contexts.sequences.get(shadow.context_id) is shadow:
                self._demands.free(shadow)
