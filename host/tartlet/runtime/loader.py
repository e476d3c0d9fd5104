"""Loads programs: components by way of the compiler's cache, source by way of its language's runner."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from tartlet import paths
from tartlet.component_limits import EMBEDDED, refusal
from tartlet.contract import contract
from tartlet.errors import ConfigError, InvalidComponentError, ProgramError
from tartlet.languages.built import built_component
from tartlet.languages.language import ProgramSource, SourceMode
from tartlet.languages.python import PYTHON
from tartlet.languages.registry import is_source, language_of, source_mode, what_is_a_program
from tartlet.progress import Progress
from tartlet.runtime.code_cache import CodeCache
from tartlet.runtime.compiled_program import CompiledProgram, code_missing
from tartlet.runtime.compiled_program import read_source as read_compiled_source
from tartlet.runtime.program import Program
from tartlet.runtime.source_compilation import COMPILE_LIMITS, CompileJob
from tartlet.runtime.supervisor import Supervisor
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.component_counts import count_component
from tartlet.wasm.host_function import Interfaces
from tartlet.wasm.linker import LinkedComponent

_GIVE = "Give a program's folder or file, a .wasm component, or Python source text of several lines."


@dataclass(frozen=True, slots=True)
class _Runner:
    """The component that runs source of a language."""

    linked: LinkedComponent
    controller: LinkedComponent
    """The same component, with what controllers may do."""
    digest: str


@dataclass(frozen=True, slots=True)
class OfferedInterfaces:
    """What each kind of component may import, WASI included."""

    of_inferlets: Interfaces
    of_controllers: Interfaces
    of_runner: Interfaces
    of_controller_runner: Interfaces
    """Of the runner, when it runs a controller."""


class Loader:
    """Make programs. Everything here blocks: call it off the loop. Thread: any, several at once.

    Args:
        compiler: Makes native code of components, and keeps it.
        supervisor: Where the runner compiles source, and where spares are kept.
        interfaces: What programs may import, and WASI.
        num_spares: Runners of a language to keep parked once the first program of its source is loaded.
        progress: Hears of building a runner or a program.
    """

    def __init__(
        self,
        compiler: Compiler,
        supervisor: Supervisor,
        *,
        interfaces: OfferedInterfaces,
        num_spares: int,
        progress: Progress,
    ) -> None:
        self._compiler = compiler
        self._supervisor = supervisor
        self._interfaces = interfaces
        self._num_spares = num_spares
        self._progress = progress
        self._linked: WeakValueDictionary[str, LinkedComponent] = WeakValueDictionary()  # by digest
        self._code_cache = CodeCache(paths.folder("code"))
        self._runners: dict[str, _Runner] = {}  # by language
        self._runner_lock = threading.Lock()

    def load(self, source: str | Path | bytes | ProgramSource | CompiledProgram, name: str | None) -> Program:
        """The program in `source`; see `Host.load`."""
        if isinstance(source, CompiledProgram):
            return self._load_compiled(source, name or "program")
        if isinstance(source, ProgramSource):
            return self._load_source(source, name or source.main)
        if isinstance(source, bytes | bytearray):
            return self._load_component(bytes(source), name or "component")
        if isinstance(source, str) and "\n" in source:
            return self._load_source(ProgramSource(PYTHON.name, "main", {"main.py": source}), name or "main")
        path = _existing_path(source)
        name = name or path.resolve().stem
        if not is_source(path):
            return self._load_component(_read_component(path), name)
        language = language_of(path)
        if language.source_mode is not None:
            return self._load_source(language.source_mode.read_source(path, self._progress), name)
        return self._load_component(_read_component(built_component(path, language, self._progress)), name)

    def _load_component(self, component: bytes, name: str) -> Program:
        digest = hashlib.sha256(component).hexdigest()
        count_component(component, EMBEDDED)
        world = contract().world_of(component)
        linked = self._linked.get(digest)
        if linked is None:
            contract().check_component(component, world)
            compiled = self._compiler.compile(component)
            contract().check_types(self._compiler.wasm_engine, compiled, world)
            interfaces = self._interfaces.of_inferlets if world == "inferlet" else self._interfaces.of_controllers
            linked = LinkedComponent(self._compiler.wasm_engine, compiled, interfaces)
            self._linked[digest] = linked
        as_inferlet, as_controller = (linked, None) if world == "inferlet" else (None, linked)
        return Program(name, digest, "component", as_inferlet, as_controller)

    def _load_compiled(self, compiled: CompiledProgram, name: str) -> Program:
        """Load what another process has compiled. Raises ProgramError, code `code_missing`, if it is not there."""
        if compiled.kind == "source":
            source = read_compiled_source(compiled.path)
            runner = self._get_runner(source.language, source_mode(source.language))
            controller = runner.controller if source.is_controller else None
            return Program(name, compiled.digest, "source", runner.linked, controller, source.main, source.files_json)
        key = str(compiled.path)  # not the digest: who else has the same shares nothing
        linked = self._linked.get(key)
        if linked is None:
            component = self._compiler.load(compiled.path)
            if component is None:
                raise code_missing()
            world = "controller" if compiled.is_controller else "inferlet"
            contract().check_types(self._compiler.wasm_engine, component, world)
            of_kind = self._interfaces.of_controllers if compiled.is_controller else self._interfaces.of_inferlets
            linked = self._linked[key] = LinkedComponent(self._compiler.wasm_engine, component, of_kind)
        as_inferlet, as_controller = (None, linked) if compiled.is_controller else (linked, None)
        return Program(name, compiled.digest, "component", as_inferlet, as_controller)

    def _load_source(self, source: ProgramSource, name: str) -> Program:
        mode = source_mode(source.language)
        runner = self._get_runner(source.language, mode)
        files_json = json.dumps(dict(sorted(source.files.items())))
        digest = hashlib.sha256(f"{runner.digest} {source.main} {files_json}".encode()).hexdigest()
        compiled_json = self._code_cache.get(digest)
        if compiled_json is None:
            compiled_json = self._compile_source(runner.linked, source.main, files_json)
            self._code_cache.put(digest, compiled_json)
        controller = runner.controller if mode.has_controller(source) else None
        return Program(name, digest, "source", runner.linked, controller, source.main, compiled_json)

    def _compile_source(self, runner: LinkedComponent, main: str, files_json: str) -> str:
        """The files with their code. Raises BuildError with the syntax error."""
        job = CompileJob(main, files_json)
        return job.code(self._supervisor.call_export(runner, "compile", (), state=job, limits=COMPILE_LIMITS).result())

    def _get_runner(self, language: str, mode: SourceMode) -> _Runner:
        with self._runner_lock:
            runner = self._runners.get(language)
            if runner is None:
                component = mode.runner_component(self._progress).read_bytes()
                compiled = self._compiler.compile(component)
                engine, interfaces = self._compiler.wasm_engine, self._interfaces
                linked = LinkedComponent(engine, compiled, interfaces.of_runner)
                controller = LinkedComponent(engine, compiled, interfaces.of_controller_runner)
                runner = _Runner(linked, controller, hashlib.sha256(component).hexdigest())
                self._runners[language] = runner
                self._supervisor.keep_spares(linked, self._num_spares)
            return runner


def _existing_path(source: str | Path) -> Path:
    """The file or folder that a caller named. Raises ConfigError for another type, ProgramError if none is there."""
    if not isinstance(source, str | Path):
        raise ConfigError(f"a program must be a path, text or bytes, not {type(source).__name__}", hint=_GIVE)
    try:
        path = Path(source).expanduser()
        if path.is_dir() or path.is_file():
            return path
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or `~` where nobody has a home
        pass
    shown = repr(str(source)) if len(str(source)) <= 200 else f"{str(source)[:200]!r}..."
    raise ProgramError(f"there is no file or folder {shown}", hint=_GIVE, code="not_found")


def _read_component(path: Path) -> bytes:
    """The bytes of a file. Raises InvalidComponentError at once if it is something else than WebAssembly."""
    try:
        size = path.stat().st_size
        if size > EMBEDDED.max_size_bytes:
            raise refusal("size_bytes", size, EMBEDDED.max_size_bytes)
        component = path.read_bytes()
    except OSError as error:
        raise ProgramError(f"{path} cannot be read: {error.strerror}", code="not_readable") from error
    if not component.startswith(b"\0asm"):
        raise InvalidComponentError(
            f"{path} is neither source nor a WebAssembly component",
            hint=f"Give a component, {what_is_a_program()}.",
            code="not_a_component",
        )
    return component
