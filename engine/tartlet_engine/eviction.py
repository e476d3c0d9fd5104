"""Evicting tokens from the middle of a context: what later tokens do not see any more.

Everything before is computed first, so that what is kept does not depend on when that happens to be done. Keys and
values that are kept stay the bits they were, positions included; tokens after the gap move up in the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet_engine.accounts import RunLimitError
from tartlet_engine.api import Done, EngineError, ErrorCode, EvictContext, Failed, ModelInfo
from tartlet_engine.command_error import CommandError
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.pages import OutOfPagesError
from tartlet_engine.preemption import Preemption
from tartlet_engine.sequence import Sequence


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
    ) -> None:
        """Evict from contexts of one model.

        Args:
            info: the model's facts.
            runner: moves keys and values.
            contexts: all contexts.
            demands: where flushes are begun, and events collect.
            preemption: makes room for what moves.
            require_computable: raises CommandError for a context that can never fit.
        """
        self._info = info
        self._runner = runner
        self._contexts = contexts
        self._demands = demands
        self._preemption = preemption
        self._require_computable = require_computable
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
        """Drop the tokens, now that all are computed."""
        if command.start < command.end:
            try:
                sequence.operation = "evicted"  # so that nobody takes its pages to make room
                self._make_room(sequence, command)
                moves = sequence.evict(command.start, command.end)
            except RunLimitError as breach:
                self._demands.stop_run(breach)
                return
            except OutOfPagesError as error:
                message = f"moving what is kept needs {error.need:,} pages, {error.available:,} are available"
                hint = "Free contexts, or evict as many tokens as fill whole pages, which moves those of one page only."
                self._demands.events.append(
                    Failed(command.operation_id, EngineError(ErrorCode.KV_EXHAUSTED, message, hint))
                )
                return
            finally:
                sequence.operation = None
            if moves is not None:
                self._runner.move_slots(moves)
        self._demands.events.append(Done(command.operation_id))

    def _make_room(self, sequence: Sequence, command: EvictContext) -> None:
        """Bring back pages that are swapped, and make room for what moves, as far as idle contexts give it."""
        page_table = sequence.page_table
        if num_swapped := page_table.num_swapped:
            self._preemption.take_from_idle(num_swapped)
            self._preemption.bring_back(sequence)
        *_, num_new = page_table.pages_to_evict(command.start, command.end, len(sequence.token_ids))
        self._preemption.take_from_idle(num_new)
