"""The host's side of the interfaces in wit/, one module for each.

Each module has `INTERFACE`: host functions by WIT item name, called with the fiber, whose `state` is the `RunState`,
and with the lifted arguments. They run on the executor's thread, on the guest's stack.
"""

from tartlet.bindings import (
    constraints,
    contexts,
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
from tartlet.wasm.host_function import Interfaces

PROGRAM_INTERFACES: Interfaces = {
    "tartlet:inferlet/events": events.INTERFACE,
    "tartlet:inferlet/models": models.INTERFACE,
    "tartlet:inferlet/contexts": contexts.INTERFACE,
    "tartlet:inferlet/constraints": constraints.INTERFACE,
    "tartlet:inferlet/generation": generation.INTERFACE,
    "tartlet:inferlet/forward": forward.INTERFACE,
    "tartlet:inferlet/stepping": stepping.INTERFACE,
    "tartlet:inferlet/store": store.INTERFACE,
    "tartlet:inferlet/runs": runs.INTERFACE,
    "tartlet:inferlet/log": log.INTERFACE,
}
"""What every program may import."""

RUNNER_INTERFACES: Interfaces = {**PROGRAM_INTERFACES, "tartlet:inferlet/source": source.INTERFACE}
"""What a language runner of ours may import."""
