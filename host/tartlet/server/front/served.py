"""The requests that inferlets answer now: which run answers which."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from tartlet.server.front.live_run import LiveRun


class Served(NamedTuple):
    """A request that an inferlet answers."""

    run: LiveRun
    method: str
    path: str
    """Below the inferlet's own address, without the query."""


class ServedRuns:
    """Those of all tenants, on one event loop."""

    def __init__(self) -> None:
        self._served: dict[str, Served] = {}  # by run, the oldest first

    @contextlib.contextmanager
    def noted(self, run: LiveRun, method: str, path: str) -> Iterator[None]:
        """Know of a request for as long as it is answered."""
        self._served[run.run_id] = Served(run, method, path)
        try:
            yield
        finally:
            del self._served[run.run_id]

    def of(self, tenant: str, name: str | None = None) -> list[Served]:
        """Those of a tenant, the oldest first; of one inferlet, if its name is given as it was asked for."""
        served = [each for each in self._served.values() if each.run.tenant == tenant]
        return [each for each in served if name is None or each.run.program == name]
