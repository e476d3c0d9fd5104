"""The host's interfaces, as componentize-py binds them.

They exist only inside the sandbox, so they are imported at their first use: `tartlet_sdk` itself can be imported by any
Python, for an editor or a unit test.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tartlet_sdk.errors import OutsideSandbox

if TYPE_CHECKING:
    from componentize_py_types import Err as Err
    from wit_world.imports import constraints as constraints
    from wit_world.imports import contexts as contexts
    from wit_world.imports import controllers as controllers
    from wit_world.imports import events as events
    from wit_world.imports import forward as forward
    from wit_world.imports import generation as generation
    from wit_world.imports import log as log
    from wit_world.imports import models as models
    from wit_world.imports import runs as runs
    from wit_world.imports import steering as steering
    from wit_world.imports import stepping as stepping
    from wit_world.imports import store as store
    from wit_world.imports import types as types

INTERFACES = frozenset(
    {
        "constraints",
        "contexts",
        "controllers",
        "events",
        "forward",
        "generation",
        "log",
        "models",
        "runs",
        "steering",
        "stepping",
        "store",
        "types",
    }
)


def __getattr__(name: str) -> Any:
    """Import an interface of the contract, or `Err`, and keep it. Raises `OutsideSandbox` where there is none."""
    if name not in INTERFACES and name != "Err":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        bound = (
            import_module("componentize_py_types").Err if name == "Err" else import_module(f"wit_world.imports.{name}")
        )
    except ImportError:
        raise OutsideSandbox(
            "this needs the host, and works only in a Tartlet sandbox", hint="Start it with `tartlet run`."
        ) from None
    globals()[name] = bound
    return bound
