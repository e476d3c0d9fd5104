"""Saving and opening contexts, on the engine's thread: what the commands do, step by step.

    save   flush a fork of the context -> read its pages, some a step -> give them to the store, on a worker thread
    open   let the store find it, on a worker thread -> take pages, write them, some a step -> the context is there

Pages are copied between steps, a bounded number each time, so that nobody's tokens wait for long; the disk is only
touched by the worker. A fork holds the pages of what is being saved: it is a context like any other, by the
operation's id, and goes away with its run.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import torch

from tartlet_engine.accounts import RunAccount, RunLimitError
from tartlet_engine.api import (
    DeleteSaved,
    Done,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    ListSaved,
    ModelInfo,
    Opened,
    OpenSaved,
    SaveContext,
    SavedContext,
    SavedList,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.pager import Pager
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.saved_file import SavedHeader, Snapshot
from tartlet_engine.sequence import Sequence

MAX_TTL_MS = 10 * 365 * 24 * 3600 * 1000
MAX_HOST_STATE = 1 << 20  # characters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}", re.ASCII)

# What is copied between two steps: a few milliseconds' worth.
TRANSFER_BYTES = 16 << 20

_log = logging.getLogger("tartlet_engine")


@dataclass(slots=True)
class _Save:
    """A save under way, until its pages are read."""

    command: SaveContext
    fork: Sequence
    contents: list[torch.Tensor] = field(default_factory=list)  # of the pages read so far
    num_read: int = 0


@dataclass(slots=True)
class _Opening:
    """An opening under way, once the saved context has been found."""

    command: OpenSaved
    sequence: Sequence
    snapshot: Snapshot
    num_written: int = 0


class SaveOperations:
    """Everything under way that concerns saved contexts. All but `on_result` is for the engine's thread."""

    def __init__(
        self,
        info: ModelInfo,
        pager: Pager,
        preemption: Preemption,
        contexts: ContextTable,
        demands: Demands,
        accounts: dict[int, RunAccount],
        require_computable: Callable[[Sequence], None],
        store: SavedContexts,
        worker: Executor,
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
            worker: carries out what the store does, one thing after the other.
            adapter_digests: of the adapters that contexts may have, by name.
        """
        self._info = info
        self._pager = pager
        self._preemption = preemption
        self._contexts = contexts
        self._demands = demands
        self._accounts = accounts
        self._require_computable = require_computable
        self._store = store
        self._worker = worker
        self._adapter_digests = adapter_digests
        self._flushing: dict[int, _Save] = {}  # by operation: their tokens are being computed
        self._transfers: deque[_Save | _Opening] = deque()
        self._num_in_worker = 0
        self._results: deque[Callable[[], None]] = deque()  # filled by the worker, for this thread
        self.on_result: Callable[[], None] = lambda: None  # called on the worker when there is something to take up
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            SaveContext: self._save,
            OpenSaved: self._open,
            ListSaved: self._list,
            DeleteSaved: self._delete,
        }

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return bool(self._results or self._transfers or any(self._has_failed(save) for save in self._flushing.values()))

    @property
    def is_waiting(self) -> bool:
        """Tell whether the worker still has something to do."""
        return self._num_in_worker > 0

    def advance(self) -> None:
        """Take up what the worker has done, and copy some pages."""
        for save in [save for save in self._flushing.values() if self._has_failed(save)]:
            self._give_up(save)
        while self._results:
            self._num_in_worker -= 1
            self._results.popleft()()
        if self._transfers:
            transfer = self._transfers[0]
            try:
                is_over = self._read_some(transfer) if isinstance(transfer, _Save) else self._write_some(transfer)
            except Exception as error:
                _log.exception("copying pages failed")
                message = f"copying pages failed: {type(error).__name__}: {error}"
                self._fail(transfer, EngineError(ErrorCode.INTERNAL, message))
                is_over = True
            if is_over:
                self._transfers.popleft()

    def check_integrity(self) -> None:
        """Raise AssertionError unless whatever holds pages for an operation is known here."""
        under_way = [save.fork for save in self._flushing.values()]
        under_way += [t.fork if isinstance(t, _Save) else t.sequence for t in self._transfers]
        for sequence in self._contexts.sequences.values():
            is_held = sequence.operation is not None
            assert is_held or sequence not in under_way, f"context {sequence.context_id} is held by no operation"
            if is_held and not self.is_waiting:
                assert sequence in under_way, f"context {sequence.context_id} is left of an operation"

    # ---- Commands ----

    def _save(self, command: SaveContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        _check_name(command.name)
        if command.ttl_ms is not None and not 1 <= command.ttl_ms <= MAX_TTL_MS:
            message = f"the time to live must be 1 to {MAX_TTL_MS:,} ms, got {command.ttl_ms:,}"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        if len(command.host_state) > MAX_HOST_STATE:
            message = f"host_state has {len(command.host_state):,} characters; at most {MAX_HOST_STATE:,} can be kept"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        self._require_computable(sequence)
        self._contexts.fork(sequence, command.operation_id, len(sequence.token_ids))
        fork = self._contexts.get(command.operation_id)
        fork.operation = "saved"
        save = _Save(command, fork)
        self._flushing[command.operation_id] = save
        self._contexts.flush(fork, command.operation_id, then=lambda: self._begin_to_read(save))
        self._demands.complete_flushes(fork)

    def _open(self, command: OpenSaved, arrived_ns: int) -> None:
        account = self._account(command.run_id)
        _check_name(command.name)
        self._contexts.create(command.context_id, account)
        sequence = self._contexts.get(command.context_id)
        sequence.operation = "opened"

        def take_up(future: Future[Snapshot]) -> None:
            if self._contexts.sequences.get(command.context_id) is not sequence:
                return  # freed meanwhile
            try:
                self._begin_to_write(_Opening(command, sequence, future.result()))
            except Exception as error:
                self._demands.free(sequence)
                self._answer(account, Failed(command.operation_id, _engine_error(error)))

        self._in_worker(lambda: self._store.get(account.tenant, command.name), take_up)

    def _list(self, command: ListSaved, arrived_ns: int) -> None:
        account = self._account(command.run_id)

        def listed() -> Event:
            now_ms = self._store.now_ms()
            saved = [
                SavedContext(
                    name=entry.header.name,
                    model=entry.header.model,
                    num_tokens=entry.header.num_tokens,
                    num_bytes=entry.num_bytes,
                    expires_in_ms=None if entry.header.expires_ms is None else max(0, entry.header.expires_ms - now_ms),
                    adapter=entry.header.adapter,
                )
                for entry in self._store.all_of(account.tenant)
            ]
            return SavedList(command.operation_id, tuple(saved))

        self._answer_from_worker(account, command.operation_id, listed)

    def _delete(self, command: DeleteSaved, arrived_ns: int) -> None:
        account = self._account(command.run_id)
        _check_name(command.name)

        def deleted() -> Event:
            self._store.delete(account.tenant, command.name)
            return Done(command.operation_id)

        self._answer_from_worker(account, command.operation_id, deleted)

    # ---- Saving ----

    def _begin_to_read(self, save: _Save) -> None:
        del self._flushing[save.command.operation_id]
        self._transfers.append(save)

    def _read_some(self, save: _Save) -> bool:
        """Read pages of a fork that is computed. Tells whether nothing is left to do here."""
        fork = save.fork
        if self._contexts.sequences.get(fork.context_id) is not fork:
            return True  # its run was closed
        page_ids = fork.page_table.page_ids
        if page_ids:
            page_bytes = save.contents[0].shape[1] if save.contents else TRANSFER_BYTES
            end = min(len(page_ids), save.num_read + max(1, TRANSFER_BYTES // page_bytes))
            save.contents.append(self._pager.read(page_ids[save.num_read : end]))
            save.num_read = end
            if end < len(page_ids):
                return False
        else:
            save.contents.append(torch.empty((0, 0), dtype=torch.uint8))
        account = fork.account
        make_snapshot = self._snapshot_maker(save)
        self._demands.free(fork)

        def stored() -> Event:
            self._store.put(make_snapshot(), overwrite=save.command.overwrite)
            return Done(save.command.operation_id)

        self._answer_from_worker(account, save.command.operation_id, stored)
        return True

    def _snapshot_maker(self, save: _Save) -> Callable[[], Snapshot]:
        """Return what makes the snapshot, which is for the worker, and no longer depends on the fork."""
        command, fork = save.command, save.fork
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
        contents = save.contents
        return lambda: Snapshot(header, token_ids, torch.cat(contents), logits)

    # ---- Opening ----

    def _begin_to_write(self, opening: _Opening) -> None:
        """Take pages for a saved context that was found.

        If too few are free just now, its tokens are computed again when somebody demands it, under the rules that then
        hold for everybody who waits for pages.
        """
        sequence, snapshot = opening.sequence, opening.snapshot
        token_ids = snapshot.token_ids.tolist()
        sequence.token_ids, sequence.gaps = token_ids, snapshot.header.gaps
        if sequence.next_position > self._info.context_len or len(snapshot.pages) != self._pages_for(len(token_ids)):
            raise CommandError(ErrorCode.INTERNAL, f"{opening.command.name!r} does not fit the model it was saved with")
        self._require_adapter(snapshot.header)
        sequence.adapter = snapshot.header.adapter
        self._require_computable(sequence)
        try:
            sequence.account.require_pages(len(snapshot.pages))
            self._preemption.take_from_idle(len(snapshot.pages))
            sequence.page_table.reserve(0, len(token_ids))
        except RunLimitError as breach:
            self._demands.stop_run(breach)
            self._demands.free(sequence)
        except OutOfPagesError as error:
            if sequence.gaps:
                message = f"{opening.command.name!r} needs {error.need:,} pages, {error.available:,} are available"
                hint = "Free contexts; what was evicted from is not computed again."
                raise CommandError(ErrorCode.KV_EXHAUSTED, message, hint) from error
            _log.info("saved context %r is opened without its pages: %s", opening.command.name, error)
            self._complete(opening)
        else:
            self._transfers.append(opening)

    def _require_adapter(self, header: SavedHeader) -> None:
        """Raise CommandError unless the adapter that a context was saved with is there, with the same weights."""
        if header.adapter is None or self._adapter_digests.get(header.adapter) == header.adapter_digest:
            return
        is_other = header.adapter in self._adapter_digests
        what = "whose weights are others now" if is_other else "which the model has not been given"
        message = f"{header.name!r} was saved with the adapter {header.adapter!r}, {what}"
        raise CommandError(ErrorCode.UNSUPPORTED, message, "Serve that adapter as it was then, or fill a new context.")

    def _write_some(self, opening: _Opening) -> bool:
        """Write pages of a context that is opened. Tells whether nothing is left to do here."""
        sequence, pages = opening.sequence, opening.snapshot.pages
        if self._contexts.sequences.get(sequence.context_id) is not sequence:
            return True  # it was freed
        if sequence.account.is_stopped:
            self._demands.free(sequence)  # its run waits for nothing any more, and its pages have been given back
            return True
        start = opening.num_written
        end = min(len(pages), start + max(1, TRANSFER_BYTES // max(1, pages.shape[1])))
        if end > start:
            self._pager.write(sequence.page_table.page_ids[start:end], pages[start:end])
        opening.num_written = end
        if end < len(pages):
            return False
        sequence.num_computed = len(sequence.token_ids)
        if opening.snapshot.logits is not None:
            sequence.logits = opening.snapshot.logits.to(self._pager.logits_device)
        self._complete(opening)
        return True

    def _complete(self, opening: _Opening) -> None:
        opening.sequence.operation = None
        header = opening.snapshot.header
        event = Opened(opening.command.operation_id, tuple(opening.sequence.token_ids), header.host_state, header.gaps)
        self._answer(opening.sequence.account, event)

    # ---- What all have in common ----

    def _pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self._info.page_size)

    def _account(self, run_id: int) -> RunAccount:
        account = self._accounts.get(run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {run_id}")
        return account

    def _has_failed(self, save: _Save) -> bool:
        """Tell whether a save's tokens will never be computed; whoever waited has been told."""
        return not save.fork.has_demand

    def _give_up(self, save: _Save) -> None:
        del self._flushing[save.command.operation_id]
        if self._contexts.sequences.get(save.fork.context_id) is save.fork:
            self._demands.free(save.fork)

    def _fail(self, transfer: _Save | _Opening, error: EngineError) -> None:
        sequence = transfer.fork if isinstance(transfer, _Save) else transfer.sequence
        if self._contexts.sequences.get(sequence.context_id) is sequence:
            self._demands.free(sequence)
        self._answer(sequence.account, Failed(transfer.command.operation_id, error))

    def _answer(self, account: RunAccount, event: Event) -> None:
        """Tell the run, unless it is closed."""
        if self._accounts.get(account.run_id) is account:
            self._demands.events.append(event)

    def _answer_from_worker(self, account: RunAccount, operation_id: int, work: Callable[[], Event]) -> None:
        """Let the worker find the answer to an operation."""

        def take_up(future: Future[Event]) -> None:
            error = future.exception()
            event = future.result() if error is None else Failed(operation_id, _engine_error(error))
            self._answer(account, event)

        self._in_worker(work, take_up)

    def _in_worker(self, work: Callable[[], Any], take_up: Callable[[Future[Any]], None]) -> None:
        """Carry out `work` on the worker, then `take_up` on this thread, with its result."""

        def done(future: Future[Any]) -> None:
            self._results.append(lambda: take_up(future))
            self.on_result()

        self._num_in_worker += 1
        self._worker.submit(work).add_done_callback(done)


def _check_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        message = f"a saved context cannot be named {name[:200]!r}"
        hint = "A name has 1 to 128 letters a-z A-Z, digits and . _ : / -, and begins with a letter or digit."
        raise CommandError(ErrorCode.INVALID_ARGUMENT, message, hint)


def _engine_error(error: BaseException) -> EngineError:
    if isinstance(error, CommandError):
        return error.error
    if isinstance(error, OSError):
        return EngineError(ErrorCode.UNAVAILABLE, f"saved contexts cannot be used: {error.strerror}")
    _log.error("an operation on saved contexts failed", exc_info=error)
    return EngineError(ErrorCode.INTERNAL, f"it failed: {type(error).__name__}: {error}")
