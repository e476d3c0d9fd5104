"""What the operator asks of the engine on behalf of a tenant, without a program: its saved contexts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from tartlet.errors import ConfigError, TartletError
from tartlet.runtime.engine_link import EngineLink
from tartlet_engine.api import CloseRun, Command, Event, Failed, OpenRun


class TenantRequests:
    """The requests of one host that have not been answered. On the executor's thread, but for `Future`s."""

    def __init__(self, link: EngineLink) -> None:
        self._link = link
        self._requests: set[_Request] = set()

    def begin(self, run: OpenRun, operation_id: int, command: Command, future: Future[Event]) -> None:
        """Carry out a command in a run of its own.

        Args:
            run: Says on whose behalf.
            operation_id: By which the engine answers the command.
            command: That is asked.
            future: Its result is the answer; a failure is a TartletError.
        """
        request = _Request(run.run_id, future, self._end)
        self._requests.add(request)
        self._link.register(run.run_id, request)
        self._link.register(operation_id, request)
        self._link.submit(run, run.run_id)
        self._link.submit(command, run.run_id)

    def close(self, error: TartletError) -> None:
        """Give up all that have not been answered."""
        for request in list(self._requests):
            request.fail(error)

    def _end(self, request: _Request) -> None:
        self._requests.discard(request)
        self._link.unregister_run(request)
        self._link.submit(CloseRun(request.run_id), request.run_id)


class _Request:
    """One command, and who waits for its answer."""

    def __init__(self, run_id: int, future: Future[Event], on_end: Callable[[_Request], None]) -> None:
        self.run_id = run_id
        self._future = future
        self._on_end = on_end

    @property
    def run(self) -> _Request:
        """It stands for its own run."""
        return self

    def wake(self) -> None:
        """No program waits for it."""

    def handle(self, event: Event, at_ns: int) -> None:
        """Take in the answer."""
        if isinstance(event, Failed):
            error = event.error
            self.fail(ConfigError(error.message, hint=error.hint, code=error.code.value.replace("-", "_")))
            return
        self._on_end(self)
        if self._future.set_running_or_notify_cancel():
            self._future.set_result(event)

    def fail(self, error: TartletError) -> None:
        """End it with an error."""
        self._on_end(self)
        if self._future.set_running_or_notify_cancel():
            self._future.set_exception(error)
