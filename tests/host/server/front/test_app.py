from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from fastapi.routing import APIRoute

from tartlet.server.front.app import ROUTERS
from tartlet.server.front.routes import figures

HEAVY = ("torch", "wasmtime", "tartlet.wasm", "tartlet.host", "transformers", "numpy")


def test_the_front_loads_neither_wasmtime_nor_torch() -> None:
    """In a process of its own, the whole application is there without them."""
    code = f"import sys, tartlet.server.front.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "route",
    [each for router in (*ROUTERS, figures.router, figures.open_router) for each in router.routes],
    ids=lambda route: route.path,
)
def test_routes_run_on_the_event_loop(route: APIRoute) -> None:
    """FastAPI calls what is no coroutine in a thread, which costs each request more than the work itself."""
    called = [route.endpoint, *(each.call for each in route.dependant.dependencies)]

    assert all(inspect.iscoroutinefunction(each) for each in called), called
