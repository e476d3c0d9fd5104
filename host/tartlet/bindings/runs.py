"""Binding of `runs` in wit/: who am I, and what may I use."""

from __future__ import annotations

from collections.abc import Mapping

from tartlet.runtime.guest_state import GuestFiber
from tartlet.wasm.host_function import HostFunction


def info(fiber: GuestFiber) -> dict[str, object]:
    """Say who the run is."""
    run = fiber.state
    return {"id": run.run_id, "inferlet": run.inferlet, "tenant": run.tenant, "seed": run.seed}


def limits(fiber: GuestFiber) -> list[dict[str, object]]:
    """Give the run's limits, and what has been used of each."""
    return [{"name": name, "used": used, "allowed": allowed} for name, used, allowed in fiber.state.limits_in_use()]


INTERFACE: Mapping[str, HostFunction] = {"info": info, "limits": limits}
