"""Saving contexts: flush a fork -> read its pages, some a step -> give them to the store, on a thread of its own.

The fork holds the pages of what is being saved: it is a context like any other, by the operation's id, and goes away
with its run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tartlet_engine import validation
from tartlet_engine.api import Done, Event, ModelInfo, SaveContext
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.pager import Pager
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot
from tartlet_engine.sequence import Sequence
from tartlet_engine.store_worker import StoreWorker
from tartlet_engine.transfers import Transfers


class Saving:
    """Carries out `SaveContext`. On the engine's thread."""

    def __init__(
        self,
        info: ModelInfo,
        pager: Pager,
        contexts: ContextTable,
        demands: Demands,
        require_computable: Callable[[Sequence], None],
        store: SavedContexts,
        worker: StoreWorker,
        transfers: Transfers,
        adapter_digests: Mapping[str, str],
    ) -> None:
        """Save contexts of one model.

        Args:
            info: the model's facts.
            pager: reads pages.
            contexts: all contexts.
            demands: where flushes are begun.
            require_computable: raises CommandError for a context that can never fit.
            store: where saved contexts are.
            worker: lets the store work.
            transfers: where pages are read, some a step.
            adapter_digests: of the adapters that contexts may have, by name.
        """
        self._info = info
        self._pager = pager
        self._contexts = contexts
        self._demands = demands
        self._require_computable = require_computable
        self._store = store
        self._worker = worker
        self._transfers = transfers
        self._adapter_digests = adapter_digests
        self._flushing: dict[int, Sequence] = {}  # by operation: forks whose tokens are being computed
        self.handlers: dict[type, Callable[[Any, int], None]] = {SaveContext: self._save}

    @property
    def sequences(self) -> list[Sequence]:
        """Forks whose tokens are being computed, to be saved then."""
        return list(self._flushing.values())

    @property
    def has_failed(self) -> bool:
        """Tell whether tokens that were to be saved will never be computed. Whoever waited has been told."""
        return any(not fork.has_demand for fork in self._flushing.values())

    def give_up_failed(self) -> None:
        """Free the forks that will never be computed."""
        for operation_id, fork in list(self._flushing.items()):
            if not fork.has_demand:
                del self._flushing[operation_id]
                self._demands.discard(fork)

    def _save(self, command: SaveContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        validation.check_save(command)
        self._require_computable(sequence)
        self._contexts.fork(sequence, command.operation_id, len(sequence.token_ids))
        fork = self._contexts.get(command.operation_id)
        fork.operation = "saved"
        self._flushing[command.operation_id] = fork
        self._contexts.flush(fork, command.operation_id, then=lambda: self._begin_to_read(command))
        self._demands.complete_flushes(fork)

    def _begin_to_read(self, command: SaveContext) -> None:
        fork = self._flushing.pop(command.operation_id)
        reader = _PageReader(
            command.operation_id,
            fork,
            self._pager,
            then=lambda contents: self._keep(command, fork, contents),
            give_up=lambda: self._demands.discard(fork),
        )
        self._transfers.add(reader)

    def _keep(self, command: SaveContext, fork: Sequence, contents: list[torch.Tensor]) -> None:
        """Let the store keep what has been read, which goes on without the fork."""
        now_ms = self._store.now_ms()
        header = SavedHeader(
            tenant=fork.account.tenant,
            name=command.name,
            model=self._info.name,
            fingerprint=self._store.fingerprint,
            num_tokens=len(fork.token_ids),
            created_ms=now_ms,
            expires_ms=None if command.ttl_ms is None else now_ms + command.ttl_ms,
            host_state=command.host_state,
            gaps=fork.gaps,
            adapter=fork.adapter,
            adapter_digest="" if fork.adapter is None else self._adapter_digests[fork.adapter],
        )
        token_ids = torch.tensor(fork.token_ids, dtype=torch.int32)
        logits = None if fork.logits is None else fork.logits.float().cpu()
        self._demands.free(fork)

        def stored() -> Event:
            pages = torch.cat(contents) if contents else torch.empty((0, 0), dtype=torch.uint8)
            self._store.put(Snapshot(header, token_ids, pages, logits), overwrite=command.overwrite)
            return Done(command.operation_id)

        self._worker.find_answer(fork.account, command.operation_id, stored)


class _PageReader:
    """Reads the pages of a fork that is computed: a `transfers.Transfer`."""

    def __init__(
        self,
        operation_id: int,
        fork: Sequence,
        pager: Pager,
        then: Callable[[list[torch.Tensor]], None],
        give_up: Callable[[], None],
    ) -> None:
        self.operation_id = operation_id
        self.sequence = fork
        self._pager = pager
        self._then = then
        self.give_up = give_up
        self._contents: list[torch.Tensor] = []  # uint8[pages, page_bytes] each
        self._num_read = 0

    @property
    def sequences(self) -> list[Sequence]:
        """The fork."""
        return [self.sequence]

    def copy_some(self, max_bytes: int) -> bool:
        """Read some pages."""
        page_ids = self.sequence.page_table.page_ids
        if page_ids:
            end = min(len(page_ids), self._num_read + max(1, max_bytes // self._pager.page_bytes))
            self._contents.append(self._pager.read(page_ids[self._num_read : end]))
            self._num_read = end
            if end < len(page_ids):
                return False
        self._then(self._contents)
        return True
