"""Evicting tokens from the middle of a context: what later tokens do not see any more.

Everything before is computed first, so that what is kept does not depend on when that happens to be done. Keys and
values that are kept stay the bits they were, positions included; tokens after the gap move up in the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet_engine.api import Done, EngineError, ErrorCode, EvictContext, Failed, ModelInfo
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.moving import Move
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.sequence import Sequence
from tartlet_engine.transfers import Transfers


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
            page_bytes: what a page takes.
        """
        self._info = info
        self._runner = runner
        self._contexts = contexts
        self._demands = demands
        self._preemption = preemption
        self._require_computable = require_computable
        self._transfers = transfers
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
                    self._fail_for_pages,
                )
            )

    def _fail_for_pages(self, command: EvictContext, error: OutOfPagesError) -> None:
        message = f"moving what is kept needs {error.need:,} pages, {error.available:,} are available"
        hint = "Free contexts, or evict as many tokens as fill whole pages, which moves those of one page only."
        self._demands.events.append(Failed(command.operation_id, EngineError(ErrorCode.KV_EXHAUSTED, message, hint)))
