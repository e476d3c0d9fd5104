"""Evicting tokens from the middle of a context: what later tokens do not see any more.

Everything before is computed first, so that what is kept does not depend on when that happens to be done. Keys and
values that are kept stay the bits they were, positions included; tokens after the gap move up in the pages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import Done, ErrorCode, EvictContext, Failed, ModelInfo
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.moving import Move
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.sequence import Room, Sequence
from tartlet_engine.side_work import SideWork
from tartlet_engine.store_worker import engine_error
from tartlet_engine.transfers import Transfers

_log = logging.getLogger("tartlet_engine")


class Evictions:
    """Carries out `EvictContext`. On the engine's thread."""

    def __init__(
        self,
        info: ModelInfo,
        runner: ModelRunner,
        contexts: ContextTable,
        demands: Demands,
        preemption: Preemption,
        require_computable: Callable[[Sequence], None],
        transfers: Transfers,
        side_work: SideWork,
        page_bytes: int,
    ) -> None:
        """Evict from contexts of one model.

        Args:
            info: the model's facts.
            runner: moves keys and values.
            contexts: all contexts.
            demands: where flushes are begun, and events collect.
            preemption: makes room for what moves.
            require_computable: raises CommandError for a context that can never fit.
            transfers: where keys and values are moved, some a step.
            side_work: charges for what is moved all at once.
            page_bytes: what a page takes.
        """
        self._info = info
        self._runner = runner
        self._contexts = contexts
        self._demands = demands
        self._preemption = preemption
        self._require_computable = require_computable
        self._transfers = transfers
        self._side_work = side_work
        self._page_bytes = page_bytes
        self.handlers: dict[type, Callable[[Any, int], None]] = {EvictContext: self._evict}

    def _evict(self, command: EvictContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        if "evict" not in self._info.features:
            message = (
                f"{self._info.name} attends within sliding windows of positions, from which nothing can be evicted"
            )
            raise CommandError(ErrorCode.UNSUPPORTED, message)
        if not 0 <= command.start <= command.end < max(1, len(sequence.token_ids)):
            message = (
                f"the context has {len(sequence.token_ids):,} tokens, of which the last must stay; "
                f"cannot evict {command.start:,} to {command.end:,}"
            )
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "To drop the end of a context, truncate it.")
        self._require_computable(sequence)
        if sequence.token_ids:
            self._contexts.flush(
                sequence, command.operation_id, then=lambda: self._drop(sequence, command), is_exclusive=True
            )
            self._demands.complete_flushes(sequence)
        else:
            self._demands.events.append(Done(command.operation_id))

    def _drop(self, sequence: Sequence, command: EvictContext) -> None:
        """Drop the tokens, now that all are computed: at once where nothing moves, and else between steps."""
        num_tokens = len(sequence.token_ids)
        *_, num_new = sequence.page_table.pages_to_evict(command.start, command.end, num_tokens)
        if command.start == command.end:
            self._demands.events.append(Done(command.operation_id))
        elif num_new == 0:
            sequence.evict(command.start, command.end)
            self._demands.events.append(Done(command.operation_id))
        else:
            self._transfers.add(
                Move(
                    command,
                    sequence,
                    self._runner,
                    self._contexts,
                    self._demands,
                    self._preemption,
                    self._page_bytes,
                    self._move_all_at_once,
                )
            )

    def _move_all_at_once(self, command: EvictContext, sequence: Sequence) -> None:
        """Use the pages of what is dropped for what moves, because there are no others. Everybody waits for that.

        Without enough even of these the context waits for room among those that compute, and holds nothing meanwhile
        that cannot be taken from it.
        """
        if sequence.page_table.num_swapped:
            self._wait_for_room(command, sequence)
            return
        try:
            moves = sequence.evict(command.start, command.end)
            if moves is not None:
                self._runner.move_slots(moves)
            self._demands.events.append(Done(command.operation_id))
        except OutOfPagesError:
            self._wait_for_room(command, sequence)
        except RunLimitError as breach:
            self._demands.stop_run(breach)

    def _wait_for_room(self, command: EvictContext, sequence: Sequence) -> None:
        room = Room(*sequence.page_table.pages_to_evict(command.start, command.end, len(sequence.token_ids)))
        self._contexts.flush(
            sequence,
            command.operation_id,
            then=lambda: self._move_in_step(command, sequence),
            is_exclusive=True,
            room=room,
        )

    def _move_in_step(self, command: EvictContext, sequence: Sequence) -> None:
        """Move in a step that has made room. Only if somebody has come to share pages in it, is there too little."""
        began = time.monotonic()
        try:
            self._move_all_at_once(command, sequence)
        except Exception as error:
            _log.exception("context=%d cannot be moved", sequence.context_id)
            self._demands.events.append(Failed(command.operation_id, engine_error(error)))
        self._side_work.charge(sequence.account.share, time.monotonic() - began)
