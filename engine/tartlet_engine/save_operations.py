"""Everything that concerns saved contexts, on the engine's thread: saving and opening, listing and deleting.

    save   flush a fork of the context -> read its pages, some a step -> give them to the store (`saving.py`)
    open   let the store find it -> take pages, write them, some a step -> the context is there (`opening.py`)

Pages are copied between steps (`transfers.py`); the disk is only touched on a thread of its own (`store_worker.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from tartlet_engine import validation
from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import DeleteSaved, Done, Event, ListSaved, ModelInfo, SavedContext, SavedList
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.opening import Opening
from tartlet_engine.pager import Pager
from tartlet_engine.preemption import Preemption
from tartlet_engine.saved_contexts import SavedContexts, SavedEntry
from tartlet_engine.saving import Saving
from tartlet_engine.sequence import Sequence
from tartlet_engine.store_worker import StoreWorker
from tartlet_engine.transfers import Transfers


class SaveOperations:
    """Everything under way that concerns saved contexts."""

    def __init__(
        self,
        info: ModelInfo,
        pager: Pager,
        preemption: Preemption,
        contexts: ContextTable,
        demands: Demands,
        accounts: Mapping[int, RunAccount],
        require_computable: Callable[[Sequence], None],
        store: SavedContexts,
        executor: Executor,
        transfers: Transfers,
        adapter_digests: Mapping[str, str],
    ) -> None:
        """Save and open contexts of one model.

        Args:
            info: the model's facts.
            pager: reads and writes pages.
            preemption: makes room for what is opened.
            contexts: all contexts.
            demands: where flushes are begun, and events collect.
            accounts: the open runs.
            require_computable: raises CommandError for a context that can never fit.
            store: where saved contexts are.
            executor: carries out what the store does, one thing after the other.
            transfers: where pages are copied, some a step.
            adapter_digests: of the adapters that contexts may have, by name.
        """
        self._contexts = contexts
        self._store = store
        self._worker = StoreWorker(executor, accounts, demands)
        self._transfers = transfers
        self._saving = Saving(
            info,
            pager,
            contexts,
            demands,
            require_computable,
            store,
            self._worker,
            self._transfers,
            adapter_digests,
        )
        self._opening = Opening(
            info,
            pager,
            preemption,
            contexts,
            demands,
            require_computable,
            store,
            self._worker,
            self._transfers,
            adapter_digests,
        )
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            **self._saving.handlers,
            **self._opening.handlers,
            ListSaved: self._list,
            DeleteSaved: self._delete,
        }

    def on_result(self, listener: Callable[[], None]) -> None:
        """Set who is called, on the store's thread, when `advance` has something to take up."""
        self._worker.on_result = listener

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return self._worker.has_results or self._saving.has_failed

    @property
    def is_waiting(self) -> bool:
        """Tell whether the store still has something to do."""
        return self._worker.is_busy

    def advance(self) -> None:
        """Take up what the store has done."""
        self._saving.give_up_failed()
        self._worker.take_up_results()

    def check_integrity(self) -> None:
        """Raise AssertionError unless whatever holds pages for an operation is known here."""
        under_way = [*self._saving.sequences, *self._opening.sequences, *self._transfers.sequences]
        for sequence in self._contexts.sequences.values():
            is_held = sequence.operation is not None
            assert is_held or sequence not in under_way, f"context {sequence.context_id} is held by no operation"
            if is_held and not self.is_waiting:
                assert sequence in under_way, f"context {sequence.context_id} is left of an operation"

    def _list(self, command: ListSaved, arrived_ns: int) -> None:
        account = self._worker.account(command.run_id)

        def listed() -> Event:
            now_ms = self._store.now_ms()
            entries = self._store.all_of(account.tenant)
            return SavedList(command.operation_id, tuple(described(entry, now_ms) for entry in entries))

        self._worker.find_answer(account, command.operation_id, listed)

    def _delete(self, command: DeleteSaved, arrived_ns: int) -> None:
        account = self._worker.account(command.run_id)
        validation.check_saved_name(command.name)

        def deleted() -> Event:
            self._store.delete(account.tenant, command.name)
            return Done(command.operation_id)

        self._worker.find_answer(account, command.operation_id, deleted)


def described(entry: SavedEntry, now_ms: int) -> SavedContext:
    """Return what is told of a saved context."""
    header = entry.header
    return SavedContext(
        name=header.name,
        model=header.model,
        num_tokens=header.num_tokens,
        num_bytes=entry.num_bytes,
        expires_in_ms=None if header.expires_ms is None else max(0, header.expires_ms - now_ms),
        adapter=header.adapter,
    )
