"""What the fake engine does with commands about saved contexts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_saved import FakeSavedContexts
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import DeleteSaved, EngineError, ListSaved, Opened, OpenSaved, SaveContext, SavedList


class FakeSavedCommands:
    """Save, open, list and delete contexts."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self._saved = FakeSavedContexts(state.info.name)
        self.handlers: dict[type, Callable[[Any], None]] = {
            SaveContext: self._save,
            OpenSaved: self._open,
            ListSaved: self._list,
            DeleteSaved: self._delete,
        }

    def _save(self, command: SaveContext) -> None:
        context = self._state.contexts[command.context_id]
        if self._state.prefill_within_limits(context, command.operation_id):
            error = self._saved.put(self._tenant(context.run_id), command, context.token_ids, context.adapter)
            self._state.answer(command.operation_id, error)

    def _open(self, command: OpenSaved) -> None:
        """Give an opened context its pages without counting a prefill."""
        saved = self._saved.get(self._tenant(command.run_id), command.name)
        if isinstance(saved, EngineError):
            self._state.answer(command.operation_id, saved)
            return
        context = FakeContext(command.context_id, command.run_id, list(saved.token_ids), adapter=saved.adapter)
        if self._state.compute(context, command.operation_id):
            self._state.contexts[command.context_id] = context
            if not self._state.is_over_limit(command.run_id):
                self._state.events.append(Opened(command.operation_id, saved.token_ids, saved.host_state))

    def _list(self, command: ListSaved) -> None:
        saved = self._saved.of_tenant(self._tenant(command.run_id))
        self._state.events.append(SavedList(command.operation_id, saved))

    def _delete(self, command: DeleteSaved) -> None:
        self._state.answer(command.operation_id, self._saved.delete(self._tenant(command.run_id), command.name))

    def _tenant(self, run_id: int) -> str:
        return self._state.runs[run_id].tenant
