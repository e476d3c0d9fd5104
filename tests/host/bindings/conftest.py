"""Programs in Python that use the interfaces, run on the fake engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from tartlet import sync
from tartlet.testing import FakeEngine

HEAD = """
import asyncio, dataclasses
from tartlet_sdk import *
from wit_world.imports import contexts, events, generation, log, models, runs, stepping
from componentize_py_types import Err

def refused(call, *args):
    try:
        call(*args)
    except Err as error:
        return [error.value.code.name, error.value.message]
    return None

SAMPLING = generation.Sampling(0.0, 0, 1.0, 0.0, 1.0, 0.0, 0.0, [], None)
STOP = generation.StopConditions(None, [], [], False)

def options(streaming=False, **given):
    nothing = {field.name: None for field in dataclasses.fields(generation.Options)}
    return generation.Options(**nothing | {"streaming": streaming, "chunk_interval_ns": 0} | given)


@inferlet
async def main(value=None):
"""

Guest = Callable[..., Any]


def indented(body: str) -> str:
    lines = body.strip("\n").split("\n")
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join("    " + line[margin:] for line in lines) + "\n"


@pytest.fixture
def guest(fake: Any) -> Guest:
    """Runs the body of an inferlet, which sees the SDK and the raw interfaces, and gives what it returns."""

    def run(body: str, value: Any = None, **options: Any) -> Any:
        return fake.run(HEAD + indented(body), {"value": value}, **options)

    return run


@pytest.fixture
def adapted() -> Iterator[Guest]:
    """As `guest`, on a host whose model has the adapters polite and brief."""
    with closing(FakeEngine(adapters=["polite", "brief"])) as engine:
        with sync.Host(engine=engine, spares=0) as host:
            yield lambda body: host.run(HEAD + indented(body), {"value": None})
        engine.check_integrity()
