"""The public way in: a `Host` runs programs next to a model. `tartlet.sync` has the same without asyncio."""

from __future__ import annotations

import asyncio
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tartlet import arguments, compose, control, models, paths
from tartlet.bindings import (
    CONTROLLER_INTERFACES,
    CONTROLLER_RUNNER_INTERFACES,
    PROGRAM_INTERFACES,
    RUNNER_INTERFACES,
)
from tartlet.errors import ConfigError, ProgramError
from tartlet.limits import Limits
from tartlet.progress import Progress, silent
from tartlet.run import Run
from tartlet.runtime.channel import Channel, LoopWaker
from tartlet.runtime.loader import Loader, OfferedInterfaces
from tartlet.runtime.prefixes import prefix_tokens
from tartlet.runtime.program import Program
from tartlet.runtime.program_names import Loadable, ProgramNames
from tartlet.runtime.run_state import RunState
from tartlet.runtime.slow_work import run_to_its_end
from tartlet.runtime.supervisor import RunCounts, Supervisor
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasm_engine import process_engine
from tartlet_engine.api import (
    Command,
    DeleteSaved,
    EngineClient,
    EngineStats,
    Event,
    ListSaved,
    ModelInfo,
    SavedContext,
    SavedList,
)

TENANT = "local"


@dataclass(frozen=True, slots=True)
class HostStats:
    """What a host is doing."""

    runs: RunCounts
    engine: EngineStats


class Host:
    """A model and what runs programs next to it: `async with Host() as host`.

    Making one is cheap; entering it loads the model. Leaving it cancels what still runs and frees everything.

    Args:
        model: Any name that `tartlet.models.pull` takes: of the catalogue, a Hugging Face id, a folder or a GGUF file.
        dtype: "float32", "bfloat16" or "auto".
        quantize: The format of the weights in memory, in groups of 32: "int8", "int4" or "none". For models of the
            Llama family on CPUs. Fewer bytes are read for each token, so one sequence is faster.
        threads: CPU threads of the model; None for all cores.
        kv_pages: Pages in the pool of the KV cache; None for as many as fit in memory.
        swap_bytes: Memory for what has to leave the KV cache for others; None for a part of what is available. With 0,
            it is computed again.
        prefix_cache: Keep computed pages, as long as nobody else needs them, for prompts that begin with the same
            tokens. Tenants do not find each other's.
        saved_path: The folder for contexts that programs save; None for `saved` in `TARTLET_HOME`.
        saved_bytes: What the saved contexts of one tenant may take.
        adapters: Folders of LoRA adapters in the format of PEFT, by the names that programs know them by.
        adapter_bytes: Memory that all adapters together may take.
        programs: Programs that others can ask for by name, such as controllers: what `load` takes, by `name` or
            `name@version`. Each is loaded when it is first asked for.
        engine: An engine to use instead of loading a model, such as `tartlet.testing.FakeEngine`. It serves one host at
            a time, and stays the caller's to close.
        limits: What a run may use if its start does not say otherwise.
        spares: Python runners kept ready, for programs given as source. Each holds about 1 MB.
        progress: Hears of fetching, building and loading, on another thread.
    """

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
        self._settings = arguments.checked_settings(
            model=model,
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
        )
        self._named = arguments.checked_programs(programs)
        arguments.check_engine(engine)
        arguments.check_count("spares", spares)
        arguments.check_progress(progress)
        self._given_engine = engine
        self._limits = Limits() if limits is None else arguments.checked_limits(limits)
        self._num_spares = spares
        self._progress = progress
        self._weights: dict[str, float] = {}  # of tenants, where it is not 1
        self._engine: EngineClient | None = None
        self._supervisor: Supervisor | None = None
        self._loader: Loader | None = None
        self._names = ProgramNames({}, self._load)
        self._waker: LoopWaker | None = None

    async def __aenter__(self) -> Host:
        if self._supervisor is not None:
            raise ConfigError("the host is open already")
        engine = self._given_engine
        if engine is None:
            engine = await run_to_its_end(self._start_engine, undo=lambda engine: engine.close())
        wasm_engine = process_engine()
        self._engine, self._supervisor = engine, Supervisor(wasm_engine, engine)
        wasi = wasi_interfaces()
        self._loader = Loader(
            Compiler(wasm_engine, paths.components_folder(), self._progress),
            self._supervisor,
            interfaces=OfferedInterfaces(
                {**wasi, **PROGRAM_INTERFACES},
                {**wasi, **CONTROLLER_INTERFACES},
                {**wasi, **RUNNER_INTERFACES},
                {**wasi, **CONTROLLER_RUNNER_INTERFACES},
            ),
            num_spares=self._num_spares,
            progress=self._progress,
        )
        self._names = ProgramNames(self._named, self._load)
        self._waker = LoopWaker(asyncio.get_running_loop())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        supervisor, self._supervisor = self._supervisor, None
        engine, self._engine = self._engine, None

        def close() -> None:
            if supervisor is not None:
                supervisor.close()
            if engine is not None and engine is not self._given_engine:
                engine.close()

        await run_to_its_end(close, undo=lambda _: None)

    def __del__(self) -> None:
        if getattr(self, "_supervisor", None) is not None:  # `__init__` may have failed before there was one
            warnings.warn("a tartlet.Host was not closed: its model stays in memory", ResourceWarning, 2, source=self)

    @property
    def models(self) -> list[ModelInfo]:
        """The facts of the models that it serves, the default first."""
        return list(self._open().services.link.client.models.values())

    async def load(self, source: Loadable, *, name: str | None = None) -> Program:
        """Load a program: compile it, or take it from the cache, without blocking the loop.

        Args:
            source: A path to a folder with a main.py, to a .py file or to a .wasm component; the bytes of a component;
                or Python source text. A string is source text if it has a newline, and else a path.
            name: What the program is called; by default the name of its file or folder.

        Raises:
            InvalidComponentError: It is no component that this host can run; `code` says in which way.
            BuildError: The source cannot be read or compiled, or the runner cannot be built.
            ProgramError: There is no such file, or it is neither Python nor a component.
            ConfigError: `source` is of another type, or `name` is no Unicode text.
        """
        self._open()
        if name is not None:
            arguments.check_text("a program's name", name)
        assert self._loader is not None
        return await asyncio.to_thread(self._loader.load, source, name)

    async def start(
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
        """Start a run of a program, which is loaded first if it is not a `Program` yet.

        Args:
            program: What `load` gave, or takes.
            input: What the program is given: anything that JSON can hold. For a Python inferlet, its arguments by name.
            limits: What the run may use; by default the host's.
            seed: What sampling and the program's `random` follow, 0 <= seed < 2**64; by default drawn. Not `uuid`,
                `secrets` and `os.urandom`: they stay random.
            tenant: On whose behalf it runs. Tenants have fair shares of the engine, saved contexts of their own, and
                never find what another has computed.
            programs: What this run can ask for by name, instead of the host's own `programs`.
            run_id: What the run is called; by default a name that is hard to guess. No two runs may have the same.

        Raises:
            ConfigError: The input is not JSON, the seed is out of its range, the limits are no `Limits`, or a tenant
                or a run cannot have that name.
            ProgramError: As `load`; or it is a controller, which runs with `control`.
        """
        self._open()
        input_json = arguments.checked_json(input)
        if not isinstance(program, Program):
            program = await self.load(program)
        own = program
        names = self._names if programs is None else ProgramNames(arguments.checked_programs(programs), self._load)

        def find_controller(name: str) -> Program:
            return own if name == own.name and own.controller is not None else names.controller(name)

        return self._start(program, input_json, find_controller, limits, seed, tenant, run_id)

    def _start(
        self,
        program: Program,
        input_json: str,
        find_controller: Callable[[str], Program],
        limits: Limits | None,
        seed: int | None,
        tenant: str,
        run_id: str | None,
    ) -> Run:
        supervisor = self._open()
        assert self._waker is not None
        seed = secrets.randbits(64) if seed is None else arguments.checked_seed(seed)
        limits = self._limits if limits is None else arguments.checked_limits(limits)
        arguments.checked_tenant(tenant)
        if program.linked is None:
            hint = "Give it a prompt: `tartlet run --controller FILE --prompt TEXT`, or Host.control."
            raise ProgramError(f"{program.name} is a controller, which steers generations of others", hint=hint)
        channel = Channel(self._waker)
        state = RunState(
            supervisor.services,
            channel,
            run_id=f"run_{secrets.token_hex(12)}" if run_id is None else arguments.checked_run_id(run_id),
            inferlet=program.name,
            tenant=tenant,
            weight=self._weights.get(tenant, 1.0),
            limits=limits,
            seed=seed,
            program=program.runner_json(input_json),
            find_controller=find_controller,
            on_finish=supervisor.forget,
        )
        supervisor.start(state, program, input_json)
        return Run(state, channel, supervisor)

    async def run(
        self,
        program: Program | Loadable,
        input: Any = None,
        *,
        limits: Limits | None = None,
        seed: int | None = None,
        tenant: str = TENANT,
    ) -> Any:
        """Run a program to its end and give its result: `start` and `result` in one. Cancelled, it cancels the run."""
        run = await self.start(program, input, limits=limits, seed=seed, tenant=tenant)
        try:
            return await run.result()
        finally:
            run.cancel()

    async def start_control(
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
        """Start a generation that a controller steers, as a run of its own.

        Its result is `{"sequences": [...]}`, with the `text`, the number of `tokens` and the `finish_reason` of each.
        There is one if the controller never forks.

        Args:
            controller: A controller that `load` gave, or what it takes.
            prompt: The text to go on from, or what the user says.
            config: What the controller's `start` is given: anything that JSON can hold.
            chat: Whether the prompt is a user's message, which the model's chat template writes out.
            max_tokens: The most tokens for each sequence.
            temperature: How sampling is done where the controller does not say; 0 takes the most likely token.
            limits: As for `start`.
            seed: As for `start`.
            tenant: As for `start`.
            run_id: As for `start`.

        Raises:
            ConfigError, ProgramError: As `start`; or it is no controller.
        """
        self._open()
        options = control.control_input(prompt, config, chat=chat, max_tokens=max_tokens, temperature=temperature)
        if not isinstance(controller, Program):
            controller = await self.load(controller)
        names = ProgramNames({control.CONTROLLER: controller}, self._load)
        names.controller(control.CONTROLLER)
        program = await self.load(control.SOURCE, name="control")
        return self._start(program, arguments.checked_json(options), names.controller, limits, seed, tenant, run_id)

    async def control(
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
        """Let a controller steer a generation to its end, and give its result: `start_control` and `result` in one."""
        run = await self.start_control(
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
        try:
            return await run.result()
        finally:
            run.cancel()

    def set_tenant(self, tenant: str, *, weight: float) -> None:
        """Set a tenant's weight: one of weight 2 gets twice as much of the engine as one of 1, which is the default.

        It holds from the start of the tenant's next run on, for all of its runs.

        Raises ConfigError unless the weight is 0.001 to 1000.
        """
        self._weights[arguments.checked_tenant(tenant)] = arguments.checked_weight(weight)

    async def saved_contexts(self, tenant: str = TENANT) -> list[SavedContext]:
        """What contexts a tenant has saved, by name; also those of other models in the same folder.

        Raises:
            ConfigError: A tenant cannot have that name.
            EngineStoppedError: The engine is gone.
        """
        answer = await self._ask(tenant, ListSaved)
        assert isinstance(answer, SavedList)
        return list(answer.contexts)

    async def delete_saved(self, tenant: str, name: str) -> None:
        """Delete one of a tenant's saved contexts. Runs that have opened it keep what they have.

        Raises:
            ConfigError: There is none of that name (`code` is `not_found`), or neither can be a name.
            EngineStoppedError: The engine is gone.
        """
        arguments.check_text("name", name)
        await self._ask(tenant, lambda operation_id, run_id: DeleteSaved(operation_id, run_id, name))

    async def publish_prefix(
        self, prefix: str | Sequence[int], *, role: str | None = None, adapter: str | None = None
    ) -> int:
        """Compute the beginning of a prompt once and keep it, for every tenant's contexts that begin with it.

        Only whole pages of tokens are kept, up to half of the KV cache in all. Whoever can start runs can tell by the
        time of a first token what is published; so publish what is no secret.

        Args:
            prefix: A text, or token ids of the model.
            role: The text is the first message of a chat, by this role: what `context.system(text)` fills in.
            adapter: The one that contexts must be made with to find it.

        Returns:
            Its number, for `unpublish_prefix`.

        Raises:
            ConfigError: It is shorter than a page or too long, there is no such adapter, or the engine has no prefix
                cache.
            EngineStoppedError: The engine is gone.
        """
        client = self._open().services.link.client
        arguments.check_text("adapter", adapter, may_be_none=True)
        text = client.text(next(iter(client.models)))
        token_ids = await asyncio.to_thread(prefix_tokens, text, prefix, role)
        return await asyncio.wrap_future(self._open().publish_prefix(token_ids, adapter))

    def unpublish_prefix(self, prefix_id: int) -> None:
        """Let go of a prefix; contexts that have begun with it keep it.

        Raises ConfigError if there is none of this number: it was unpublished already, or another host published it.
        """
        arguments.check_count("prefix_id", prefix_id)
        self._open().unpublish_prefix(prefix_id)

    def stats(self) -> HostStats:
        """The counters of runs, and those of the engine."""
        supervisor = self._open()
        return HostStats(supervisor.counts(), supervisor.services.link.client.stats())

    async def _ask(self, tenant: str, command: Callable[[int, int], Command]) -> Event:
        """Let the engine carry out one command on behalf of a tenant."""
        arguments.checked_tenant(tenant)
        return await asyncio.wrap_future(self._open().ask(tenant, self._weights.get(tenant, 1.0), command))

    def _load(self, source: Loadable, name: str) -> Program:
        """Load a program that has a name. Blocks; on any thread."""
        assert self._loader is not None
        return self._loader.load(source, name)

    def _open(self) -> Supervisor:
        if self._supervisor is None:
            raise ConfigError("the host is not open", hint="Use it inside `async with Host(...) as host`.")
        return self._supervisor

    def _start_engine(self) -> EngineClient:
        return compose.start_engine(**self._settings, progress=self._progress)
