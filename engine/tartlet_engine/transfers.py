"""Copies pages between steps, some at a time: of contexts that are saved, opened or evicted from.

What is copied between two steps is bounded in time, so that nobody's tokens wait for long. Tenants take turns, and
their runs (`fair_queue.py`), with a piece each; what a run asks for first is done first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Protocol

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import Failed
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.fair_queue import FairQueue
from tartlet_engine.sequence import Sequence
from tartlet_engine.side_work import SideWork
from tartlet_engine.store_worker import engine_error

# Copying between two steps goes on for this long, or for this part of the time that the step took, if that is longer,
# and to the end of the piece under way.
TRANSFER_S = 0.003
TRANSFER_SHARE = 0.2
# What is copied in a turn: a millisecond's worth or so if somebody waits for a step, more if nobody does.
PIECE_BYTES = 2 << 20
PIECE_BYTES_ALONE = 16 << 20

_log = logging.getLogger("tartlet_engine")


class Transfer(Protocol):
    """Pages of one context that are copied."""

    @property
    def operation_id(self) -> int:
        """The operation that they are copied for."""
        ...

    @property
    def sequence(self) -> Sequence:
        """Whose pages they are: when it is freed, nothing is left to do."""
        ...

    @property
    def sequences(self) -> list[Sequence]:
        """All contexts that cannot be used meanwhile, that one first."""
        ...

    def copy_some(self, max_bytes: int) -> bool:
        """Copy some pages, one at least and no more than `max_bytes`. Tells whether nothing is left to do."""
        ...

    def give_up(self) -> None:
        """Free what is held for it: copying has failed, or the context was freed."""
        ...


class Transfers:
    """The transfers under way. On the engine's thread."""

    def __init__(
        self, contexts: ContextTable, demands: Demands, accounts: Mapping[int, RunAccount], side_work: SideWork
    ) -> None:
        """Start with none.

        Args:
            contexts: whose pages are copied.
            demands: where the failure of one is told.
            accounts: the open runs.
            side_work: charges for the time it takes.
        """
        self._contexts = contexts
        self._demands = demands
        self._accounts = accounts
        self._side_work = side_work
        self._queue: FairQueue[Transfer] = FairQueue()

    @property
    def sequences(self) -> list[Sequence]:
        """Whose pages are copied, or wait for that."""
        return [sequence for transfer in self._queue for sequence in transfer.sequences]

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return len(self._queue) > 0

    def add(self, transfer: Transfer) -> None:
        """Copy pages after all that is copied for the same run already."""
        account = transfer.sequence.account
        self._queue.add(account.tenant, account.run_id, transfer)

    def advance(self, step_s: float) -> None:
        """Copy some pages, by turns, after a step that took `step_s`.

        What nobody holds any more, since it was freed, is over.
        """
        began = before = time.monotonic()
        allowed = max(TRANSFER_S, TRANSFER_SHARE * step_s)
        while self.has_work:
            transfer = self._queue.take()
            account = transfer.sequence.account
            if not self._is_over(transfer):
                self._queue.put_back(account.tenant, account.run_id, transfer)
            now = time.monotonic()
            self._side_work.charge(account.share, now - before)
            if now - began >= allowed:
                return
            before = now

    def _is_over(self, transfer: Transfer) -> bool:
        """Copy a piece. Tells whether nothing is left to do."""
        sequence = transfer.sequence
        if self._contexts.sequences.get(sequence.context_id) is not sequence:
            transfer.give_up()
            return True
        try:
            return transfer.copy_some(PIECE_BYTES if self._side_work.is_awaited else PIECE_BYTES_ALONE)
        except Exception as error:
            transfer.give_up()
            account = sequence.account
            if self._accounts.get(account.run_id) is account and not account.is_closing:
                self._demands.events.append(Failed(transfer.operation_id, engine_error(error)))
            return True
