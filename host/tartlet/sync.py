"""The host without asyncio: the same classes, whose calls wait.

    with tartlet.sync.Host() as host:
        for event in (run := host.start("best_of_n.py", {"n": 5})):
            print(event)
        print(run.result())

Each host has a thread with an asyncio loop, on which the asynchronous host does the work. Its methods may be called
from any other thread, and from several at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tartlet import host as asynchronous
from tartlet import models
from tartlet.errors import ConfigError
from tartlet.events import RunEvent, RunUsage
from tartlet.host import TENANT, HostStats
from tartlet.limits import Limits
from tartlet.progress import Progress, silent
from tartlet.run import Run as AsynchronousRun
from tartlet.runtime.program import Program
from tartlet.runtime.program_names import Loadable
from tartlet_engine.api import EngineClient, ModelInfo, SavedContext

T = TypeVar("T")


class _LoopThread:
    """An asyncio loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tartlet-sync", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine's result. An exception that interrupts the wait (Ctrl-C) cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread."""
        self.call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Run:
    """One run of a program: `tartlet.Run`, whose calls wait. Iterate over it for its events."""

    def __init__(self, run: AsynchronousRun, thread: _LoopThread) -> None:
        self._run = run
        self._thread = thread

    @property
    def id(self) -> str:
        """The run's id, unique and hard to guess."""
        return self._run.id

    @property
    def limits(self) -> Limits:
        """What it may use."""
        return self._run.limits

    @property
    def seed(self) -> int:
        """What its random choices come from."""
        return self._run.seed

    @property
    def usage(self) -> RunUsage:
        """What it has used so far; all of it, once it has ended."""
        return self._run.usage

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._run.has_ended

    def cancel(self) -> None:
        """End the run; see `tartlet.Run.cancel`."""
        self._run.cancel()

    def result(self) -> Any:
        """Wait for the run's end, and give what the program returned; raises as `tartlet.Run.result`."""
        return self._thread.call(self._run.result())

    def result_text(self) -> str:
        """As `result`, but just as the program wrote it; see `tartlet.Run.result_text`."""
        return self._thread.call(self._run.result_text())

    def __iter__(self) -> Iterator[RunEvent]:
        return self

    def __next__(self) -> RunEvent:
        event = self._thread.call(self._run.next_event())
        if event is None:
            raise StopIteration
        return event


class Host:
    """A model and what runs programs next to it: `tartlet.Host`, whose calls wait. The arguments are the same."""

    def __init__(
        self,
        model: str | Path = models.DEFAULT,
        *,
        dtype: str = "auto",
        quantize: str = "none",
        threads: int | None = None,
        kv_pages: int | None = None,
        swap_bytes: int | None = None,
        prefix_cache: bool = True,
        saved_path: str | Path | None = None,
        saved_bytes: int = 1 << 30,
        adapters: Mapping[str, str | Path] | None = None,
        adapter_bytes: int = 1 << 30,
        programs: Mapping[str, Loadable] | None = None,
        engine: EngineClient | None = None,
        limits: Limits | None = None,
        spares: int = 2,
        progress: Progress = silent,
    ) -> None:
        self._host = asynchronous.Host(
            model,
            dtype=dtype,
            quantize=quantize,
            threads=threads,
            kv_pages=kv_pages,
            swap_bytes=swap_bytes,
            prefix_cache=prefix_cache,
            saved_path=saved_path,
            saved_bytes=saved_bytes,
            adapters=adapters,
            adapter_bytes=adapter_bytes,
            programs=programs,
            engine=engine,
            limits=limits,
            spares=spares,
            progress=progress,
        )
        self._loop_thread: _LoopThread | None = None

    def __enter__(self) -> Host:
        thread = _LoopThread()
        try:
            thread.call(self._host.__aenter__())
        except BaseException:
            thread.close()
            raise
        self._loop_thread = thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread, self._loop_thread = self._thread, None
        try:
            thread.call(self._host.__aexit__(kind, error, trace))
        finally:
            thread.close()

    @property
    def models(self) -> list[ModelInfo]:
        """The facts of the models that it serves, the default first."""
        return self._host.models

    def load(self, source: Loadable, *, name: str | None = None) -> Program:
        """Load a program; see `tartlet.Host.load`."""
        return self._thread.call(self._host.load(source, name=name))

    def start(
        self,
        program: Program | Loadable,
        input: Any = None,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        tenant: str = TENANT,
        programs: Mapping[str, Program | Loadable] | None = None,
        run_id: str | None = None,
    ) -> Run:
        """Start a run; see `tartlet.Host.start`."""
        start = self._host.start(
            program, input, limits=limits, seed=seed, tenant=tenant, programs=programs, run_id=run_id
        )
        run = self._thread.call(start)
        return Run(run, self._thread)

    def run(
        self,
        program: Program | Loadable,
        input: Any = None,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        tenant: str = TENANT,
    ) -> Any:
        """Run a program to its end and gives its result; see `tartlet.Host.run`."""
        return self._thread.call(self._host.run(program, input, limits=limits, seed=seed, tenant=tenant))

    def start_control(
        self,
        controller: Program | Loadable,
        prompt: str,
        config: Any = None,
        *,
        chat: bool = False,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        limits: Limits | None = None,
        seed: int | None = None,
        tenant: str = TENANT,
        run_id: str | None = None,
    ) -> Run:
        """Start a generation that a controller steers; see `tartlet.Host.start_control`."""
        run = self._thread.call(
            self._host.start_control(
                controller,
                prompt,
                config,
                chat=chat,
                max_tokens=max_tokens,
                temperature=temperature,
                limits=limits,
                seed=seed,
                tenant=tenant,
                run_id=run_id,
            )
        )
        return Run(run, self._thread)

    def control(
        self,
        controller: Program | Loadable,
        prompt: str,
        config: Any = None,
        *,
        chat: bool = False,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        limits: Limits | None = None,
        seed: int | None = None,
        tenant: str = TENANT,
    ) -> Any:
        """Let a controller steer a generation to its end, and give its result; see `tartlet.Host.control`."""
        return self._thread.call(
            self._host.control(
                controller,
                prompt,
                config,
                chat=chat,
                max_tokens=max_tokens,
                temperature=temperature,
                limits=limits,
                seed=seed,
                tenant=tenant,
            )
        )

    def set_tenant(self, tenant: str, *, weight: float) -> None:
        """Set a tenant's weight; see `tartlet.Host.set_tenant`."""
        self._host.set_tenant(tenant, weight=weight)

    def saved_contexts(self, tenant: str = TENANT) -> list[SavedContext]:
        """What contexts a tenant has saved; see `tartlet.Host.saved_contexts`."""
        return self._thread.call(self._host.saved_contexts(tenant))

    def delete_saved(self, tenant: str, name: str) -> None:
        """Delete one of a tenant's saved contexts; see `tartlet.Host.delete_saved`."""
        self._thread.call(self._host.delete_saved(tenant, name))

    def publish_prefix(
        self, prefix: str | Sequence[int], *, role: str | None = None, adapter: str | None = None
    ) -> int:
        """Compute the beginning of a prompt once and keep it; see `tartlet.Host.publish_prefix`."""
        return self._thread.call(self._host.publish_prefix(prefix, role=role, adapter=adapter))

    def unpublish_prefix(self, prefix_id: int) -> None:
        """Let go of a prefix; see `tartlet.Host.unpublish_prefix`."""
        self._host.unpublish_prefix(prefix_id)

    def stats(self) -> HostStats:
        """The counters of runs, and those of the engine."""
        return self._host.stats()

    @property
    def _thread(self) -> _LoopThread:
        if self._loop_thread is None:
            raise ConfigError("the host is not open", hint="Use it inside `with Host(...) as host`.")
        return self._loop_thread
