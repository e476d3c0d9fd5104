"""The fiber as the bindings see it."""

from __future__ import annotations

from typing import Protocol

from tartlet.runtime.run_state import RunState


class RunFiber(Protocol):
    """A fiber of `tartlet.wasm` that carries a run."""

    @property
    def state(self) -> RunState:
        """The run."""
        ...
