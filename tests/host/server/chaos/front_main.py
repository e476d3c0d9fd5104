"""A server as `tartlet serve` starts it, on an engine without a model: a program that gets its settings as JSON.

`settings` are those of the server, `workers` and `fake` those of its children. `worker_module` runs in the place of
the first worker. `constants` replace figures of modules ("module:NAME"), so that a test need not wait for minutes until
something counts as stuck; children that have ended are started again after `restart_s`. On SIGUSR1 its clock jumps by
`jump_s`.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

import uvloop

from tartlet.progress import silent
from tartlet.server import logs
from tartlet.server.child_process import keep_private
from tartlet.server.engine.settings import FakeSettings
from tartlet.server.front.processes import pool
from tartlet.server.front.processes.backoff import Backoff
from tartlet.server.front.processes.child import Child
from tartlet.server.front.processes.opening import open_processes
from tartlet.server.front.running import run_server
from tartlet.server.settings import Settings


def main(options: dict[str, Any]) -> None:
    for place, value in options.get("constants", {}).items():
        module, name = place.split(":")
        assert hasattr(importlib.import_module(module), name), place
        setattr(importlib.import_module(module), name, value)
    if "jump_s" in options:
        _let_the_clock_jump(options["jump_s"])
    if "restart_s" in options:
        pool.Backoff = lambda: Backoff(options["restart_s"], options["restart_s"])  # type: ignore[misc,assignment]
    if "worker_module" in options:
        _replace_first_worker(options["worker_module"])
    settings = Settings(**{"port": 0, "drain_s": 0, **options.get("settings", {})})
    logs.set_up("json", settings.log_level)

    def open_fake(settings: Settings, _progress: Any) -> AbstractAsyncContextManager[Any]:
        fake = FakeSettings(**options.get("fake", {}))
        return open_processes(workers=options.get("workers", 2), spares=0, fake_engine=fake)

    keep_private()
    uvloop.run(run_server(settings, open_fake, silent, lambda url, key: print(url, key, flush=True)))


def _replace_first_worker(module: str) -> None:
    start = Child.start

    async def start_other(name: str, own: str, *given: Any, **options: Any) -> Child:
        return await start(name, module if name == "worker 1" else own, *given, **options)

    Child.start = start_other  # type: ignore[method-assign,assignment]


def _let_the_clock_jump(seconds: float) -> None:
    """Not a real clock, which is the machine's: that of all that asks Python for the time of day."""
    real, real_ns = time.time, time.time_ns
    jumped = 0.0

    def jump(*_: Any) -> None:
        nonlocal jumped
        jumped += seconds

    time.time = lambda: real() + jumped
    time.time_ns = lambda: real_ns() + int(jumped * 1e9)
    signal.signal(signal.SIGUSR1, jump)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
