"""The flush of a context, and the eviction of tokens: operations that only tell when they are done."""

from __future__ import annotations

from collections.abc import Callable

from tartlet.runtime.context import ContextState
from tartlet_engine.api import Command, EngineError, ErrorCode, Event, EvictContext, Failed, FlushContext

_FREED = EngineError(ErrorCode.CANCELLED, "the context was freed before that was done")


class FlushOperation:
    """A flush under way, and the event by which the program waits for it."""

    def __init__(self, context: ContextState, command: Callable[[int, int], Command] = FlushContext) -> None:
        self.run = context.run
        self.event = self.run.events.add()
        self._context = context
        self._operation_id = self.run.link.new_id()
        context.flushes.add(self)
        self.run.link.register(self._operation_id, self)
        self.run.submit(command(context.context_id, self._operation_id))

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is done, or has failed."""
        self._context.flushes.discard(self)
        self._end(event.error if isinstance(event, Failed) else None)

    def give_up(self) -> None:
        """Take in that the context is freed, after which the engine has nothing more to say."""
        self._end(_FREED)

    def _end(self, error: EngineError | None) -> None:
        self.run.link.unregister(self._operation_id)
        self.run.events.set_ready(self.event, error)


class EvictOperation(FlushOperation):
    """An eviction under way; other operations on the context wait for it."""

    def __init__(self, context: ContextState, start: int, end: int) -> None:
        context.eviction = self
        self._range = start, end
        super().__init__(context, lambda context_id, number: EvictContext(context_id, number, start, end))

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in that it is done, or has failed."""
        super().handle(event, at_ns)
        if not isinstance(event, Failed):
            self._context.take_out(*self._range)
        self._context.end_eviction()


def start_flush(context: ContextState) -> int:
    """Begin to compute what was appended to the context; the number of the event that becomes ready at its end."""
    return FlushOperation(context).event.number
