"""The way to an engine: what it is started with, what it tells of itself, and what there is to import."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from tartlet_engine import api
from tartlet_engine.api import client, commands, constraint_commands, events, forward_messages, values
from tartlet_engine.engine import InProcessEngine


@pytest.mark.parametrize(
    "value",
    [
        api.EngineConfig("tiny", "/models/tiny", kv_pages=7, adapters=(("a", "/adapters/a"),)),
        api.EngineStats(**dict(zip(api.EngineStats.__struct_fields__, range(99), strict=False))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_settings_and_counters_cross_a_socket_unchanged(value: msgspec.Struct) -> None:
    """Encoded and decoded as msgpack, they are equal to what was sent."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value)) == value


def test_everything_is_exported() -> None:
    """What the modules of `api` define can be imported from `api`, and nothing else."""
    defined = {
        name
        for module in (client, commands, constraint_commands, events, forward_messages, values)
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    }

    assert set(api.__all__) == defined | {"Command", "Event", "TARGET_IDS"}


def test_the_engine_has_what_the_client_promises() -> None:
    """Each method of the protocol is there, under the same name and with the same parameters."""
    for name, promised in inspect.getmembers(api.EngineClient, inspect.isfunction):
        if not name.startswith("_"):
            found = inspect.signature(getattr(InProcessEngine, name))
            assert list(found.parameters) == list(inspect.signature(promised).parameters), name
