"""TypeScript programs in the sandbox, on a host with a fake engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet import sync
from tartlet.errors import GuestError
from tartlet.events import Log, Output
from tartlet.languages.node import node_tool
from tartlet.testing import FakeEngine

IMPORTS = 'import * as sdk from "tartlet-sdk";\nconst { getModel, inferlet, input, sleep, Sampler, variables } = sdk;\n'


class Sandbox:
    """A host on a fake engine that runs programs given as text."""

    def __init__(self, host: sync.Host, engine: FakeEngine, folder: Path) -> None:
        self._host = host
        self.engine = engine
        self._file = folder / "main.ts"
        self.output = ""
        self.logs: list[tuple[str, str]] = []

    def run(self, text: str, given: Any = None, **options: Any) -> Any:
        """Run a program; what it prints and logs is kept."""
        self._file.write_text(text)
        run = self._host.start(self._file, given, **options)
        events = list(run)
        self.output = "".join(event.text for event in events if isinstance(event, Output))
        self.logs = [(event.level, event.message) for event in events if isinstance(event, Log)]
        return run.result()

    def main(self, body: str, given: Any = None, **options: Any) -> Any:
        """Run an inferlet that consists of these statements; they may await and return."""
        program = f"{IMPORTS}export default inferlet(async (given: any): Promise<unknown> => {{\n{body}\n}});\n"
        return self.run(program, given, **options)

    def error(self, text: str, given: Any = None) -> str:
        """The message of the error that a program ends with."""
        with pytest.raises(GuestError) as caught:
            self.run(text, given)
        return caught.value.message


@pytest.fixture(scope="session")
def js_host() -> Iterator[tuple[sync.Host, FakeEngine]]:
    """The host of all of these tests."""
    if node_tool().version is None:
        pytest.skip(f"Node.js is not installed: {node_tool().hint}")
    engine = FakeEngine(token_delay_s=0.001)
    with sync.Host(engine=engine) as host:
        yield host, engine
    engine.close()


@pytest.fixture
def js(js_host: tuple[sync.Host, FakeEngine], tmp_path: Path) -> Sandbox:
    """Runs programs."""
    return Sandbox(*js_host, tmp_path)
