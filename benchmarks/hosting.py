"""Opens a host for a benchmark, which is no coroutine itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tartlet
from tartlet_engine.api import EngineClient

T = TypeVar("T")

INFERLETS = Path(__file__).parent / "inferlets"


@dataclass(frozen=True, slots=True)
class OpenHost:
    """A host with the loop that it lives on."""

    host: tartlet.Host
    loop: asyncio.Runner

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry out something on the loop."""
        return self.loop.run(work)

    def load(self, program: bytes | str) -> tartlet.Program:
        """Load a component, or one of the files in inferlets/."""
        return self.call(self.host.load(program if isinstance(program, bytes) else INFERLETS / program))

    def run(self, program: tartlet.Program, input: Any = None, **options: Any) -> Any:
        """What a program returns."""
        return self.call(self.host.run(program, input, **options))


@contextmanager
def open_host(engine: EngineClient, *, spares: int = 0) -> Iterator[OpenHost]:
    """Open a host on an engine."""
    with asyncio.Runner() as loop:
        host = tartlet.Host(engine=engine, spares=spares, limits=UNLIMITED)
        loop.run(host.__aenter__())
        try:
            yield OpenHost(host, loop)
        finally:
            loop.run(host.__aexit__(None, None, None))


UNLIMITED = tartlet.Limits(max_cpu_ms=None, max_wall_ms=None, max_host_calls=None)
"""Benchmarks call and compute more than a run may by default."""
