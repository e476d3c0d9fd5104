"""What the fake engine does with commands about contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    AppendTokens,
    CreateContext,
    EvictContext,
    FlushContext,
    ForkContext,
    FreeContext,
    TruncateContext,
)


class FakeContextCommands:
    """Make, fill, fork, cut and free contexts."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self.handlers: dict[type, Callable[[Any], None]] = {
            CreateContext: self._create,
            AppendTokens: self._append,
            ForkContext: self._fork,
            TruncateContext: self._truncate,
            FlushContext: self._flush,
            EvictContext: self._evict,
            FreeContext: self._free,
        }

    def _create(self, command: CreateContext) -> None:
        context = FakeContext(command.context_id, command.run_id, adapter=command.adapter)
        self._state.contexts[command.context_id] = context

    def _append(self, command: AppendTokens) -> None:
        self._state.contexts[command.context_id].token_ids.extend(command.token_ids)

    def _fork(self, command: ForkContext) -> None:
        """Compute the parent first, so that its forks share all of its pages."""
        state = self._state
        parent = state.contexts[command.context_id]
        child = FakeContext(command.child_id, parent.run_id, adapter=parent.adapter)
        state.contexts[command.child_id] = child
        if all(g.context is not parent for g in state.generations.values()):
            state.prefill(parent, command.child_id)
        state.pages.fork(parent, child, command.length)

    def _truncate(self, command: TruncateContext) -> None:
        self._state.pages.truncate(self._state.contexts[command.context_id], command.length)

    def _flush(self, command: FlushContext) -> None:
        context = self._state.contexts[command.context_id]
        if self._state.prefill_within_limits(context, command.operation_id):
            self._state.answer(command.operation_id)

    def _evict(self, command: EvictContext) -> None:
        context = self._state.contexts[command.context_id]
        if self._state.prefill_within_limits(context, command.operation_id):
            self._state.pages.evict(context, command.start, command.end)
            self._state.answer(command.operation_id)

    def _free(self, command: FreeContext) -> None:
        self._state.free(command.context_id)
