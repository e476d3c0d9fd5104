"""A program built into a component behaves as it does when it is run from source."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tartlet import GuestError, Output, paths
from tartlet.languages.python import build_component, runner_digest

pytestmark = [pytest.mark.runner, pytest.mark.slow]

MAIN = """import asyncio
import random
import sys
from tartlet_sdk import Model, Sampler, inferlet, run

import helper

print("module level", len(Model.available()))

@inferlet
async def main(n: int = 2, mode: str = "good"):
    print("running", n)
    print("log", file=sys.stderr)
    if mode == "bad":
        helper.fail(n)
    if mode == "stuck":
        await asyncio.Event().wait()
    if mode == "import":
        import ssl
    base = Model.default().context()
    base.user("echo")
    drafts = await asyncio.gather(*(base.fork().generate(Sampler.top_p(0.7, 0.95)) for _ in range(n)))
    return [random.random(), run.info().seed, [draft.text for draft in drafts]]
"""
HELPER = "def fail(n):\n    raise ValueError(n)\n"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program as a folder and as a component."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "main.py").write_text(MAIN)
    (folder / "helper.py").write_text(HELPER)
    # Building and compiling take half a minute, so the component is kept for the next time that the tests run.
    digest = hashlib.sha256((runner_digest() + MAIN + HELPER).encode()).hexdigest()
    component = paths.folder("test-components") / f"{digest}.wasm"
    if not component.exists():
        build_component(folder, component)
    return folder, component


def test_results_are_the_same(sandbox: Any, both: tuple[Path, Path]) -> None:
    """The same seed and input give the same result."""
    from_source, built = (sandbox.run(program, {"n": 3}, seed=5) for program in both)

    assert from_source == built
    assert built[1:] == [5, ["echo"] * 3]


def test_output_is_the_same(sandbox: Any, both: tuple[Path, Path]) -> None:
    """Text and log lines are the same; module-level code runs in the run, not in the build."""
    from_source, built = (sandbox.output(program) for program in both)

    assert from_source == built == ("module level 1\nrunning 2\n", [("info", "log")])


@pytest.mark.parametrize("input", [{"n": "x"}, {"m": 1}, [], {"mode": "bad"}, {"mode": "stuck"}, {"mode": "import"}])
def test_errors_are_the_same(sandbox: Any, both: tuple[Path, Path], input: Any) -> None:
    """Tracebacks, explanations and refused arguments are the same, word for word."""
    from_source, built = (sandbox.failure(program, input) for program in both)

    assert from_source == built


CONTROLLER = """from tartlet_sdk import Branch, Controller

class Fork(Controller):
    def start(self, config, prompt):
        self.config = config
        print("start", config, len(prompt))
    def step(self, sequence, info):
        if self.config == "fail":
            raise ValueError("no")
        if not sequence.generated and sequence.id == 0:
            return [Branch.force([72]), Branch.force([73])]
        return [] if len(sequence.generated) > 2 else None
"""


def test_a_controller_is_built_as_one(tiny_host: Any, tmp_path: Path) -> None:
    """It is recognised by its class, and behaves as it does from source."""
    (tmp_path / "main.py").write_text(CONTROLLER)
    digest = hashlib.sha256((runner_digest() + CONTROLLER).encode()).hexdigest()
    component = paths.folder("test-components") / f"{digest}.wasm"
    if not component.exists():
        build_component(tmp_path, component)

    for config in ("go", "fail"):
        outcomes = []
        for program in (tmp_path, component):
            run = tiny_host.start_control(tiny_host.load(program, name="fork"), "hello", config, seed=1)
            text = "".join(event.text for event in run if isinstance(event, Output))
            try:
                outcomes.append((text, run.result()))
            except GuestError as error:
                outcomes.append((text, error.message))
        assert outcomes[0] == outcomes[1]
        assert outcomes[0][0].startswith(f"start {config} ")
