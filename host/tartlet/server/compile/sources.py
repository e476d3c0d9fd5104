"""Source in a compile child: it is compiled inside the runner's sandbox, and what is in it is told."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tartlet import paths
from tartlet.bindings import RUNNER_INTERFACES
from tartlet.languages.language import ProgramSource
from tartlet.languages.registry import source_mode
from tartlet.progress import silent
from tartlet.runtime import compiled_program, source_compilation
from tartlet.runtime.compiled_program import CompiledSource
from tartlet.server.compile.components import not_kept
from tartlet.server.compile.messages import Compiled, CompileJob
from tartlet.server.compile.translation import Translated
from tartlet.server.program_facts import source_facts
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.executor import Executor
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasm_engine import process_engine

_STAMP_DIGITS = 16
"""Of the digest of what the code is for: it is part of the file's name."""


def compile_source(job: CompileJob, translated: Translated) -> Compiled:
    """Make code of source. Raises what is wrong with it."""
    source = translated.source
    component = _runner_component(source.language)
    files_json = _compile(component, source)  # first: the runner knows best what is wrong with the syntax
    facts = source_facts(source)
    compiled = CompiledSource(source.language, source.main, facts.is_controller, files_json)
    code_path = Path(job.folder) / f"{translated.digest}-{hashlib.sha256(component).hexdigest()[:_STAMP_DIGITS]}.json"
    try:
        compiled_program.write_source(code_path, compiled)
    except OSError as error:
        raise not_kept(error) from error
    return Compiled(facts=facts, code_path=str(code_path))


def _compile(component: bytes, source: ProgramSource) -> str:
    """The files with their code. The files' order does not matter, so that it is always the same."""
    engine = process_engine()
    compiled = Compiler(engine, paths.components_folder()).compile(component)
    linked = LinkedComponent(engine, compiled, {**wasi_interfaces(), **RUNNER_INTERFACES})
    executor = Executor(engine)
    try:
        files_json = json.dumps(dict(sorted(source.files.items())))
        return source_compilation.compile_source(executor, linked, source.main, files_json)
    finally:
        executor.close()


def _runner_component(language: str) -> bytes:
    """The runner, which is there: a child can start no programs to build it."""
    return source_mode(language).runner_component(silent).read_bytes()
