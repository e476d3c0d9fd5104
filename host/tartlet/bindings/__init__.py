"""The host's side of the interfaces in wit/, one module for each.

Each module has `INTERFACE`: host functions by WIT item name, called with the fiber, whose `state` is the `RunState`
or the `ControllerState`, and with the lifted arguments. They run on the executor's thread, on the guest's stack.
"""

from tartlet.bindings import (
    constraints,
    contexts,
    controllers,
    events,
    forward,
    generation,
    log,
    models,
    runs,
    source,
    stepping,
    store,
)
from tartlet.errors import RunError
from tartlet.wasm.host_function import HostFunction, Interfaces

PROGRAM_INTERFACES: Interfaces = {
    "tartlet:inferlet/events": events.INTERFACE,
    "tartlet:inferlet/models": models.INTERFACE,
    "tartlet:inferlet/contexts": contexts.INTERFACE,
    "tartlet:inferlet/constraints": constraints.INTERFACE,
    "tartlet:inferlet/generation": generation.INTERFACE,
    "tartlet:inferlet/forward": forward.INTERFACE,
    "tartlet:inferlet/stepping": stepping.INTERFACE,
    "tartlet:inferlet/controllers": controllers.INTERFACE,
    "tartlet:inferlet/store": store.INTERFACE,
    "tartlet:inferlet/runs": runs.INTERFACE,
    "tartlet:inferlet/log": log.INTERFACE,
}
"""What every inferlet may import."""

_CONTROLLER_INTERFACES = ("events", "models", "constraints", "store", "runs", "log")

CONTROLLER_INTERFACES: Interfaces = {
    name: functions
    for name, functions in PROGRAM_INTERFACES.items()
    if name.removeprefix("tartlet:inferlet/") in _CONTROLLER_INTERFACES
}
"""What every controller may import."""

RUNNER_INTERFACES: Interfaces = {**PROGRAM_INTERFACES, "tartlet:inferlet/source": source.INTERFACE}
"""What a language runner of ours may import, as an inferlet."""


def _refuser(interface: str, function: str) -> HostFunction:
    name = f"{interface.rpartition('/')[2]}: {function.rpartition(']')[2]}"

    def refuse(*_: object) -> object:
        raise RunError(f"a controller cannot call what only inferlets can, {name}")

    return refuse


CONTROLLER_RUNNER_INTERFACES: Interfaces = {
    name: functions
    if name in CONTROLLER_INTERFACES or name == "tartlet:inferlet/source"
    else {item: _refuser(name, item) for item in functions}
    for name, functions in RUNNER_INTERFACES.items()
}
"""What a language runner of ours may import, as a controller: what inferlets alone may do ends it."""
