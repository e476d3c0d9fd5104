"""Copies pages of contexts that are saved or opened, between steps, one context after the other.

What is copied at a time is bounded, so that nobody's tokens wait for long.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Protocol

from tartlet_engine.api import EngineError, ErrorCode, Failed
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.sequence import Sequence
from tartlet_engine.store_worker import StoreWorker

# What is copied between two steps: a few milliseconds' worth.
TRANSFER_BYTES = 16 << 20

_log = logging.getLogger("tartlet_engine")


class Transfer(Protocol):
    """Pages of one context that are copied."""

    @property
    def operation_id(self) -> int:
        """The operation that they are copied for."""
        ...

    @property
    def sequence(self) -> Sequence:
        """Whose pages they are."""
        ...

    def copy_some(self, max_bytes: int) -> bool:
        """Copy some pages, one at least and no more than `max_bytes`. Tells whether nothing is left to do."""
        ...


class Transfers:
    """The transfers under way. On the engine's thread."""

    def __init__(self, contexts: ContextTable, demands: Demands, worker: StoreWorker) -> None:
        """Start with none, over `contexts`; of one that fails, `worker` tells its run."""
        self._contexts = contexts
        self._demands = demands
        self._worker = worker
        self._queue: deque[Transfer] = deque()

    @property
    def sequences(self) -> list[Sequence]:
        """Whose pages are copied, or wait for that."""
        return [transfer.sequence for transfer in self._queue]

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return bool(self._queue)

    def add(self, transfer: Transfer) -> None:
        """Copy pages after all that is copied already."""
        self._queue.append(transfer)

    def advance(self) -> None:
        """Copy some pages of the first context. What nobody holds any more, since it was freed, is over."""
        if not self._queue:
            return
        transfer = self._queue[0]
        sequence = transfer.sequence
        try:
            if self._contexts.sequences.get(sequence.context_id) is sequence and not transfer.copy_some(TRANSFER_BYTES):
                return
        except Exception as error:
            _log.exception("copying pages failed")
            if self._contexts.sequences.get(sequence.context_id) is sequence:
                self._demands.free(sequence)
            message = f"copying pages failed: {type(error).__name__}: {error}"
            failure = Failed(transfer.operation_id, EngineError(ErrorCode.INTERNAL, message))
            self._worker.answer(sequence.account, failure)
        self._queue.popleft()
