"""Programs in C, given as text, on a host whose engine echoes the last message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet import sync
from tartlet.events import Output
from tartlet.languages.c import build_component
from tartlet.testing import FakeEngine

Build = Callable[[str], bytes]


class CHost:
    """A host, and what it takes to run programs in C on it."""

    def __init__(self, host: sync.Host, folder: Path) -> None:
        self.host = host
        self._folder = folder

    def build(self, body: str) -> bytes:
        """A component whose `run` has this body; `input` is its input."""
        source, output = self._folder / "main.c", self._folder / "out" / "program.wasm"
        headers = "".join(f"#include <{name}.h>\n" for name in ("math", "stdio", "stdlib", "string"))
        source.write_text(f'{headers}#include "tartlet.h"\ntartlet_result run(tartlet_string input) {{\n{body}\n}}\n')
        build_component(source, output)
        return output.read_bytes()

    def run(self, body: str, input: Any = None, **options: Any) -> Any:
        """The result of such a program."""
        return self.host.run(self.build(body), input, **options)

    def output(self, program: Any, input: Any = None) -> tuple[str, Any]:
        """What a program prints, and its result."""
        run = self.host.start(program, input)
        text = "".join(event.text for event in run if isinstance(event, Output))
        return text, run.result()


@pytest.fixture(scope="session")
def c_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CHost]:
    """One for all tests."""
    engine = FakeEngine(token_delay_s=0.001)
    with sync.Host(engine=engine) as host:
        yield CHost(host, tmp_path_factory.mktemp("c"))
    engine.check_integrity()
    engine.close()
