"""The runs that go on, and those that ended a while ago: who follows them, and who ends them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

import msgspec

from tartlet.errors import RunCancelledError, UnavailableError
from tartlet.events import RunUsage
from tartlet.server.failures import to_failure
from tartlet.server.front.errors import ApiError, not_found
from tartlet.server.front.live_run import BUFFER_BYTES, NO_USAGE, LiveRun
from tartlet.server.front.run_events import Outcome
from tartlet.server.front.storage import Claim
from tartlet.server.requests import Control, ProgramRef, RunRequest
from tartlet.server.sandboxes import Sandboxes

logger = logging.getLogger("tartlet.server")

KEPT_RUNS = 1000
"""That have ended, whose events can still be read."""
KEPT_BYTES = 64 << 20
"""That these may take; of long results and buffers, fewer are kept."""
SHUTTING_DOWN = "the server is being shut down"


class Terms(msgspec.Struct, frozen=True):
    """On which terms a run may start."""

    limits: dict[str, int | None] = {}
    """As in `RunRequest`."""
    weight: float = 1.0


class EarlierRun(Exception):
    """A run that was started by the same request before counts instead."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id


class RunPolicy(Protocol):
    """Who may start runs and on which terms, and what is kept of them."""

    async def admit(self, run: LiveRun, limits: Mapping[str, int | None], claim: Claim | None) -> Terms:
        """Wait until the run may start, and say on which terms, with the limits that were asked for.

        It may be cancelled while it waits; then, and when it raises, nothing is held.

        Raises: `EarlierRun`; a `TartletError` if it may not start now, or never with such limits.
        """
        ...

    async def begin(self, run: LiveRun, claim: Claim | None) -> None:
        """Note that it starts; without a claim, the program may begin meanwhile. Raises as `admit`."""
        ...

    def charge(self, run: LiveRun) -> None:
        """Count what it has used so far (`LiveRun.usage_so_far`). Called now and then while it goes on."""
        ...

    def release(self, run: LiveRun) -> None:
        """Let go of what `admit` has taken. Called once after each `admit` that has come to its end."""
        ...

    async def end(self, run: LiveRun, outcome: Outcome) -> None:
        """Note how it has ended, and its `usage`. Called once for each `begin` that has come to its end."""
        ...


class OpenPolicy:
    """Lets everything run and keeps nothing. Implements `RunPolicy`."""

    async def admit(self, run: LiveRun, limits: Mapping[str, int | None], claim: Claim | None) -> Terms:
        """What is asked for."""
        return Terms(dict(limits))

    async def begin(self, run: LiveRun, claim: Claim | None) -> None:
        """Nothing."""

    def charge(self, run: LiveRun) -> None:
        """Nothing."""

    def release(self, run: LiveRun) -> None:
        """Nothing."""

    async def end(self, run: LiveRun, outcome: Outcome) -> None:
        """Nothing."""


class RunRegistry:
    """Starts runs and knows them until a while after their end.

    Args:
        sandboxes: runs them.
        policy: says who may, and keeps books.
        buffer_bytes: of each run's events.
    """

    def __init__(self, sandboxes: Sandboxes, policy: RunPolicy, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self._sandboxes = sandboxes
        self._policy = policy
        self._buffer_bytes = buffer_bytes
        self._live: dict[str, LiveRun] = {}
        self._ended: OrderedDict[str, LiveRun] = OrderedDict()
        self._ended_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_draining = False

    @property
    def num_live(self) -> int:
        """Runs that have not ended."""
        return len(self._live)

    @property
    def is_draining(self) -> bool:
        """Whether new runs are refused."""
        return self._is_draining

    async def start(
        self,
        tenant: str,
        program: ProgramRef,
        input_json: str,
        *,
        limits: Mapping[str, int | None] | None = None,
        seed: int | None = None,
        control: Control | None = None,
        programs: Mapping[str, ProgramRef] | None = None,
        is_detached: bool = False,
        label: str = "",
        claim: Claim | None = None,
    ) -> LiveRun:
        """Start a run. Hold it (`LiveRun.held`) for as long as a client waits for it, unless it is detached.

        Args:
            tenant: on whose behalf.
            program: what is run.
            input_json: its input.
            limits: fields of `tartlet.Limits`, as far as the client asks for any.
            seed: None: drawn.
            control: the program is a controller, which steers a generation.
            programs: what the program can ask for by name.
            is_detached: it goes on when nobody holds it.
            label: what the client called the program; by default its name.
            claim: the client's idempotency key, if it has given one.

        Raises:
            EarlierRun: the same request has started a run before.
            TartletError: it may not start. If that is because the start cannot be written down, the program may have
                begun, and has been ended; with a claim, nothing has been done.
        """
        if self._is_draining:
            raise ApiError(503, "shutting_down", SHUTTING_DOWN)
        if not self._sandboxes.is_ready:
            raise UnavailableError("runs cannot be started now", hint="Ask again in a while; see /health/ready.")
        run = LiveRun(
            tenant,
            label or program.name,
            program.digest,
            is_detached=is_detached,
            buffer_bytes=self._buffer_bytes,
        )
        request = RunRequest(
            run_id=run.run_id,
            tenant=tenant,
            program=program,
            input_json=input_json,
            limits=dict(limits or {}),
            seed=seed,
            control=control,
            programs=dict(programs or {}),
        )
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._run(run, request, claim, begun), name=run.run_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.shield(begun)
        except asyncio.CancelledError:  # who asked is gone: what has begun is ended, and what has not is not missed
            begun.add_done_callback(_heard)
            run.cancel()
            if not run.is_admitted:
                task.cancel()
            raise
        return run

    def find(self, tenant: str, run_id: str) -> LiveRun:
        """The tenant's run of this id. Raises `ApiError` if there is none, or it ended long ago."""
        run = self.get(tenant, run_id)
        if run is None:
            raise not_found("run", run_id)
        return run

    def get(self, tenant: str, run_id: str) -> LiveRun | None:
        """The tenant's run of this id; None: there is none, or it ended long ago."""
        run = self._live.get(run_id) or self._ended.get(run_id)
        return run if run is not None and run.tenant == tenant else None

    def live_of(self, tenant: str) -> list[LiveRun]:
        """The tenant's runs that have not ended, the oldest first."""
        return [run for run in self._live.values() if run.tenant == tenant]

    def charge(self) -> dict[str, RunUsage]:
        """Count what runs that go on have used so far, and give that by their ids, as far as it is known."""
        usages: dict[str, RunUsage] = {}
        for run in self._live.values():
            self._policy.charge(run)
            if (usage := run.usage_so_far) != NO_USAGE:
                usages[run.run_id] = usage
        return usages

    async def drain(self, seconds: float) -> None:
        """Start no more runs, wait for those that go on, and cancel what is left after this time."""
        self._is_draining = True
        await self._wait(seconds)
        for run in [*self._live.values()]:
            run.cancel(RunCancelledError(SHUTTING_DOWN), by="shutdown")
        await self._wait(10)

    async def close(self) -> None:
        """Cancel all runs, and wait for their ends."""
        await self.drain(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=seconds)

    async def _run(self, run: LiveRun, request: RunRequest, claim: Claim | None, begun: asyncio.Future[None]) -> None:
        """All of a run, in a task of its own, which nobody but the registry cancels."""
        try:
            terms = await self._policy.admit(run, request.limits, claim)
        except BaseException as error:
            _tell(begun, error)
            return
        run.is_admitted = True
        request = msgspec.structs.replace(request, limits=terms.limits, weight=terms.weight)
        driving: asyncio.Task[Outcome] | None = None
        try:
            if claim is None:  # no need to wait for the record; with a claim, another run may turn out to be meant
                driving = asyncio.create_task(run.drive(self._sandboxes, request))
            try:
                await self._policy.begin(run, claim)
            except BaseException as error:
                _tell(begun, error)
                if driving is not None:
                    run.cancel()
                    await driving
                return
            self._live[run.run_id] = run
            begun.set_result(None)
            await self._finish(run, driving or asyncio.create_task(run.drive(self._sandboxes, request)))
        finally:
            self._policy.release(run)

    async def _finish(self, run: LiveRun, driving: asyncio.Task[Outcome]) -> None:
        """Wait for the end of a run that is on record, and put that on record, too."""
        outcome = Outcome("cancelled", failure=to_failure(RunCancelledError(SHUTTING_DOWN)))
        try:
            outcome = await driving
        finally:
            await self._end(run, outcome)

    async def _end(self, run: LiveRun, outcome: Outcome) -> None:
        """Keep books first: what a client has seen ending is written down."""
        try:
            await self._policy.end(run, outcome)
        except Exception:
            logger.exception("the end of a run could not be written down", extra={"run_id": run.run_id})
        finally:
            run.finish(outcome)
            del self._live[run.run_id]
            self._keep(run)

    def _keep(self, run: LiveRun) -> None:
        self._ended[run.run_id] = run
        self._ended_bytes += run.num_kept_bytes
        while self._ended and (len(self._ended) > KEPT_RUNS or self._ended_bytes > KEPT_BYTES):
            self._ended_bytes -= self._ended.popitem(last=False)[1].num_kept_bytes


def _tell(begun: asyncio.Future[None], error: BaseException) -> None:
    """Tell who waits for a start that there is none."""
    if isinstance(error, asyncio.CancelledError):
        begun.cancel()
    else:
        begun.set_exception(error)


def _heard(begun: asyncio.Future[None]) -> None:
    """Note that nobody asks any more why a run has not started."""
    if not begun.cancelled():
        begun.exception()
