"""Which functions of the contract a run calls, as the host sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from tartlet.bindings import RUNNER_INTERFACES
from tartlet.wasm.host_function import HostFunction


@contextmanager
def recorded_calls() -> Iterator[set[str]]:
    """Until the end of the block, hosts that are made note each function that is called: `contexts.context.fork`.

    Clear the set before a run that is to be looked at alone.
    """
    called: set[str] = set()
    originals: list[tuple[dict[str, HostFunction], str, HostFunction]] = []
    for interface, functions in RUNNER_INTERFACES.items():
        held = cast(dict[str, HostFunction], functions)
        for item, function in list(held.items()):
            if "]" in item or item not in {each.partition("]")[2].partition(".")[0] for each in held}:
                originals.append((held, item, function))
                held[item] = _noting(called, f"{interface.rpartition('/')[2]}.{item.rpartition(']')[2]}", function)
    try:
        yield called
    finally:
        for held, item, function in originals:
            held[item] = function


def _noting(called: set[str], name: str, function: HostFunction) -> HostFunction:
    def call(*arguments: Any) -> Any:
        called.add(name)
        return function(*arguments)

    return call
