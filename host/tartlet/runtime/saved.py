"""Saved contexts, as a run deals with them: saving, opening, listing, deleting."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tartlet.runtime.context import ContextState
from tartlet.runtime.event_table import EventStatus
from tartlet.runtime.model import ModelHandle
from tartlet.runtime.refusal import engine_refusal, invalid_argument, refusal
from tartlet.runtime.run_state import RunState
from tartlet.wasm.host_function import SUSPEND
from tartlet_engine.api import (
    Command,
    EngineError,
    ErrorCode,
    Event,
    Failed,
    Opened,
    OpenSaved,
    SaveContext,
)

MAX_TTL_NS = 10 * 365 * 24 * 3600 * 10**9

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}", re.ASCII)


def check_name(name: str) -> None:
    """Raise a refusal unless a saved context can have that name."""
    if _NAME.fullmatch(name) is None:
        raise invalid_argument(
            f"a saved context cannot be named {name[:200]!r}",
            "A name has 1 to 128 letters a-z A-Z, digits and . _ : / -, and begins with a letter or digit.",
        )


class SaveOperation:
    """A save under way. It goes on when its context is freed."""

    def __init__(self, context: ContextState, name: str, ttl_ms: int | None, *, overwrite: bool) -> None:
        self.run = context.run
        self.event = self.run.events.add()
        self._operation_id = self.run.link.new_id()
        self.run.link.register(self._operation_id, self)
        self.run.submit(
            SaveContext(
                context_id=context.context_id,
                operation_id=self._operation_id,
                name=name,
                ttl_ms=ttl_ms,
                overwrite=overwrite,
                host_state=context.chat.to_json(),
            )
        )

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is done, or has failed."""
        self.run.link.unregister(self._operation_id)
        self.run.events.set_ready(self.event, event.error if isinstance(event, Failed) else None)


class OpeningState:
    """A saved context on its way, until the program takes it."""

    def __init__(self, run: RunState, model: ModelHandle, name: str) -> None:
        self.run = run
        self.event = run.events.add()
        self._error: EngineError | None = None
        self._context: ContextState | None = ContextState.opened(run, model)
        self._operation_id = run.link.new_id()
        run.link.register(self._operation_id, self)
        run.submit(OpenSaved(self._operation_id, run.engine_id, self._context.context_id, name))

    def take(self) -> ContextState:
        """The context. Raises a refusal: why there is none."""
        if self.event.status is EventStatus.PENDING:
            raise refusal(ErrorCode.UNAVAILABLE, "the context is not there yet", "Wait for the opening's event.")
        if self._error is not None:
            raise engine_refusal(self._error)
        context, self._context = self._context, None
        if context is None:
            raise refusal(ErrorCode.NOT_FOUND, "the context was taken already")
        return context

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is there, or cannot be."""
        self.run.link.unregister(self._operation_id)
        if isinstance(event, Failed):
            self._give_up(event.error)
        elif isinstance(event, Opened) and self._context is not None:
            try:
                self._context.restore(event.token_ids, event.host_state, event.gaps)
            except ValueError as error:
                message = f"it was saved by another version of this host: {error}"
                self._give_up(EngineError(ErrorCode.UNSUPPORTED, message, "Delete it, and save it again."))
        self.run.events.set_ready(self.event)

    def drop(self) -> None:
        """Free it, with the context if nobody has taken that."""
        self.run.link.unregister(self._operation_id)
        self.run.events.drop(self.event)
        if self._context is not None:
            self._context.drop()

    def _give_up(self, error: EngineError) -> None:
        self._error = error
        if self._context is not None:
            self._context.drop()
            self._context = None


class SuspendedCall:
    """A call of the program that the engine answers with one event, and that waits for it.

    Args:
        run: Whose call it is.
        command: Makes the command, out of the operation's id.
        result: What the call gives, out of the answer.
    """

    def __init__(self, run: RunState, command: Callable[[int], Command], result: Callable[[Any], object]) -> None:
        self.run = run
        self._result = result
        self._operation_id = run.link.new_id()
        run.link.register(self._operation_id, self)
        run.submit(command(self._operation_id))

    def handle(self, event: Event, at_ns: int) -> None:
        """Complete the call."""
        self.run.link.unregister(self._operation_id)
        self.run.complete(lambda: self._outcome(event))

    def _outcome(self, event: Event) -> object:
        if isinstance(event, Failed):
            raise engine_refusal(event.error)
        return self._result(event)


def call_engine(run: RunState, command: Callable[[int], Command], result: Callable[[Any], object]) -> object:
    """Suspend the program's call until the engine has answered; see `SuspendedCall`."""
    SuspendedCall(run, command, result)
    return SUSPEND
