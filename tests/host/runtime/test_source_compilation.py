from __future__ import annotations

import json

import pytest

from tartlet import paths
from tartlet.bindings import RUNNER_INTERFACES
from tartlet.errors import BuildError, LimitExceededError
from tartlet.languages.python import runner_component
from tartlet.runtime.source_compilation import CompileJob, compile_source
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.executor import Executor
from tartlet.wasm.linker import LinkedComponent
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasm_engine import process_engine

HEAD = ["Traceback (most recent call last):"]


@pytest.mark.runner
def test_source_is_compiled_without_a_host() -> None:
    """On an executor of its own. What is wrong with it is told."""
    engine = process_engine()
    component = Compiler(engine, paths.components_folder()).compile(runner_component().read_bytes())
    linked = LinkedComponent(engine, component, {**wasi_interfaces(), **RUNNER_INTERFACES})
    executor = Executor(engine)
    try:
        files = compile_source(executor, linked, "main", json.dumps({"main.py": "x = 1\n"}))
        with pytest.raises(BuildError, match="SyntaxError"):
            compile_source(executor, linked, "main", json.dumps({"main.py": "x =\n"}))
    finally:
        executor.close()

    assert json.loads(files)["main.py"]["text"] == "x = 1\n"


def test_what_the_call_comes_to() -> None:
    """The files; the runner's words; or the limit that it has met."""
    job = CompileJob("main", "{}")

    assert json.loads(job.take_program()) == {"main": "main", "files": {}, "input": None}
    assert job.code((True, "{}")) == "{}"
    with pytest.raises(BuildError, match=r"^no$"):
        job.code((False, " no\n"))
    with pytest.raises(BuildError, match="cannot be compiled"):
        job.code(LimitExceededError("memory_limit", limit="memory_bytes", used=2, allowed=1))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["MemoryError: Parser stack overflowed"], ["MemoryError: Parser stack overflowed"]),
        (
            ['  File "main.py", line 1', "    x =", "SyntaxError: invalid syntax"],
            [*HEAD, '  File "main.py", line 1', "    x =", "SyntaxError: invalid syntax"],
        ),
    ],
)
def test_the_runners_own_frames_are_not_told(lines: list[str], told: list[str]) -> None:
    """What is left is about the program."""
    text = "\n".join([*HEAD, '  File "/0/tartlet_runner/app.py", line 51, in compile', *lines])
    with pytest.raises(BuildError) as error:
        CompileJob("main", "{}").code((False, text))

    assert error.value.message.splitlines() == told
