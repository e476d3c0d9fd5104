"""Opening saved contexts: let the store find it, on a thread of its own -> take pages -> write them, some a step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import torch

from tartlet_engine import validation
from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import ErrorCode, Failed, ModelInfo, Opened, OpenSaved
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.opening_gate import OpeningGate
from tartlet_engine.pager import Pager
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot
from tartlet_engine.sequence import Sequence
from tartlet_engine.store_worker import StoreWorker, engine_error
from tartlet_engine.transfers import Transfers

_log = logging.getLogger("tartlet_engine")


class Opening:
    """Carries out `OpenSaved`. On the engine's thread."""

    def __init__(
        self,
        info: ModelInfo,
        pager: Pager,
        preemption: Preemption,
        contexts: ContextTable,
        demands: Demands,
        require_computable: Callable[[Sequence], None],
        store: SavedContexts,
        worker: StoreWorker,
        transfers: Transfers,
        adapter_digests: Mapping[str, str],
    ) -> None:
        """Open saved contexts of one model.

        Args:
            info: the model's facts.
            pager: writes pages.
            preemption: makes room for what is opened.
            contexts: all contexts.
            demands: ends what a limit ends.
            require_computable: raises CommandError for a context that can never fit.
            store: where saved contexts are.
            worker: lets the store work.
            transfers: where pages are written, some a step.
            adapter_digests: of the adapters that contexts may have, by name.
        """
        self._info = info
        self._pager = pager
        self._preemption = preemption
        self._contexts = contexts
        self._demands = demands
        self._require_computable = require_computable
        self._store = store
        self._worker = worker
        self._transfers = transfers
        self._adapter_digests = adapter_digests
        self._gate = OpeningGate()
        self.handlers: dict[type, Callable[[Any, int], None]] = {OpenSaved: self._open}

    @property
    def sequences(self) -> list[Sequence]:
        """Contexts that are to be opened when others are."""
        return self._gate.waiting

    def _open(self, command: OpenSaved, arrived_ns: int) -> None:
        account = self._worker.account(command.run_id)
        validation.check_saved_name(command.name)
        self._contexts.create(command.context_id, account)
        sequence = self._contexts.get(command.context_id)
        sequence.operation = "opened"

        def is_there() -> bool:
            return self._contexts.sequences.get(command.context_id) is sequence

        def begin() -> bool:
            if is_there():
                self._worker.carry_out(account, lambda: self._store.get(account.tenant, command.name), take_up)
                return True
            return False

        def take_up(future: Future[Snapshot]) -> None:
            is_under_way = False
            try:
                is_under_way = is_there() and self._begin_to_write(command, sequence, future.result())
            except Exception as error:
                self._demands.free(sequence)
                self._worker.answer(account, Failed(command.operation_id, engine_error(error)))
            if not is_under_way:
                self._gate.leave(account)

        self._gate.enter(sequence, begin)

    def _begin_to_write(self, command: OpenSaved, sequence: Sequence, snapshot: Snapshot) -> bool:
        """Begin to take pages for a saved context that was found, unless that breaks a limit.

        If too few are free just now, its tokens are computed again when somebody demands it, under the rules that then
        hold for everybody who waits for pages. If tokens were evicted from it that cannot be done, so its pages wait in
        the swap space.
        """
        token_ids, num_pages = snapshot.token_ids.tolist(), len(snapshot.pages)
        sequence.token_ids, sequence.gaps = token_ids, snapshot.header.gaps
        expected = -(-len(token_ids) // self._info.page_size)
        if sequence.next_position > self._info.context_len or num_pages != expected:
            raise CommandError(ErrorCode.INTERNAL, f"{command.name!r} does not fit the model it was saved with")
        self._require_adapter(snapshot.header)
        sequence.adapter = snapshot.header.adapter
        self._require_computable(sequence)
        try:
            sequence.account.require_pages(num_pages)
        except RunLimitError as breach:
            self._demands.stop_run(breach)
            self._demands.free(sequence)
            return False
        self._transfers.add(
            _PageWriter(
                command.operation_id,
                sequence,
                self._pager,
                self._preemption,
                snapshot.pages,
                then=lambda: self._take_over(command, sequence, snapshot),
                on_exhausted=lambda error: self._go_on_without_pages(command, sequence, snapshot, error),
                on_breach=self._demands.stop_run,
                give_up=lambda: self._demands.discard(sequence),
                on_end=lambda: self._gate.leave(sequence.account),
            )
        )
        return True

    def _go_on_without_pages(
        self, command: OpenSaved, sequence: Sequence, snapshot: Snapshot, error: OutOfPagesError
    ) -> None:
        if not sequence.gaps:
            _log.info("saved context %r is opened without its pages: %s", command.name, error)
            self._complete(command, sequence, snapshot)
        elif self._pager.put_into_swap(sequence, snapshot.pages):
            self._take_over(command, sequence, snapshot)
        else:
            num_pages = len(snapshot.pages)
            message = f"{command.name!r} needs {num_pages:,} pages; there is no room for {error.need:,} of them"
            message += f", and for {self._pager.num_free_swap_pages:,} pages in the swap space"
            hint = "Free contexts; what was evicted from is not computed again."
            raise CommandError(ErrorCode.KV_EXHAUSTED, message, hint) from error

    def _take_over(self, command: OpenSaved, sequence: Sequence, snapshot: Snapshot) -> None:
        """Take note that all pages are written."""
        if sequence.account.is_stopped:
            self._demands.free(sequence)  # its run waits for nothing any more, and its pages have been given back
            return
        sequence.num_computed = len(sequence.token_ids)
        if snapshot.logits is not None:
            sequence.logits = snapshot.logits.to(self._pager.logits_device)
        self._complete(command, sequence, snapshot)

    def _complete(self, command: OpenSaved, sequence: Sequence, snapshot: Snapshot) -> None:
        sequence.operation = None
        header = snapshot.header
        event = Opened(command.operation_id, tuple(sequence.token_ids), header.host_state, header.gaps)
        self._worker.answer(sequence.account, event)

    def _require_adapter(self, header: SavedHeader) -> None:
        """Raise CommandError unless the adapter that a context was saved with is there, with the same weights."""
        if header.adapter is None or self._adapter_digests.get(header.adapter) == header.adapter_digest:
            return
        is_other = header.adapter in self._adapter_digests
        what = "whose weights are others now" if is_other else "which the model has not been given"
        message = f"{header.name!r} was saved with the adapter {header.adapter!r}, {what}"
        raise CommandError(ErrorCode.UNSUPPORTED, message, "Serve that adapter as it was then, or fill a new context.")


class _PageWriter:
    """Takes pages for a context that is opened and writes them, piece by piece: a `transfers.Transfer`."""

    def __init__(
        self,
        operation_id: int,
        sequence: Sequence,
        pager: Pager,
        preemption: Preemption,
        contents: torch.Tensor,
        *,
        then: Callable[[], None],
        on_exhausted: Callable[[OutOfPagesError], None],
        on_breach: Callable[[RunLimitError], None],
        give_up: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self.operation_id = operation_id
        self.sequence = sequence
        self._give_up = give_up
        self._on_end = on_end
        self._pager = pager
        self._preemption = preemption
        self._contents = contents  # uint8[pages, page_bytes]
        self._then = then
        self._on_exhausted = on_exhausted
        self._on_breach = on_breach
        self._num_written = 0

    @property
    def sequences(self) -> list[Sequence]:
        """The context."""
        return [self.sequence]

    def copy_some(self, max_bytes: int) -> bool:
        """Write some pages; none if the run has reached a limit meanwhile, and so has lost them."""
        is_over = self._write_some(max_bytes)
        if is_over:
            self._on_end()
        return is_over

    def give_up(self) -> None:
        """Free the context, if nobody else has."""
        self._give_up()
        self._on_end()

    def _write_some(self, max_bytes: int) -> bool:
        start, num_pages = self._num_written, len(self._contents)
        if start < num_pages and not self.sequence.account.is_stopped:
            end = min(num_pages, start + max(1, max_bytes // self._pager.page_bytes))
            try:
                self._take_pages(start, end)
            except RunLimitError as breach:
                self._on_breach(breach)
                self._give_up()
                return True
            except OutOfPagesError as error:
                self.sequence.page_table.truncate(0)
                self._on_exhausted(error)
                return True
            self._pager.write(self.sequence.page_table.page_ids[start:end], self._contents[start:end])
            self._num_written = end
            if end < num_pages:
                return False
        self._then()
        return True

    def _take_pages(self, start: int, end: int) -> None:
        table, num_tokens = self.sequence.page_table, len(self.sequence.token_ids)
        self.sequence.account.require_pages(end - start)
        self._preemption.take_from_idle(end - start)
        table.reserve(start * table.page_size, min(end * table.page_size, num_tokens))
