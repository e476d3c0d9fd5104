"""The run itself: `run.info()` and `run.limits()`."""

from __future__ import annotations

from dataclasses import dataclass

from tartlet_sdk import wit


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Who am I."""

    id: str
    """The run's id."""
    inferlet: str
    """The inferlet's name."""
    tenant: str
    """The tenant on whose behalf it runs."""
    seed: int
    """What the run's random choices come from: the same seed and input give the same run."""


@dataclass(frozen=True, slots=True)
class RunLimit:
    """A limit of the run; exceeding it ends the run."""

    name: str
    """As the host's settings call it, for example `max_tokens`."""
    used: int
    allowed: int | None
    """`None` is no limit."""

    @property
    def left(self) -> int | None:
        """What may still be used; `None` is no limit."""
        return None if self.allowed is None else max(0, self.allowed - self.used)


def info() -> RunInfo:
    """Say who the run is."""
    this = wit.runs.info()
    return RunInfo(id=this.id, inferlet=this.inferlet, tenant=this.tenant, seed=this.seed)


def limits() -> dict[str, RunLimit]:
    """The run's limits by name, such as `max_tokens` (see `tartlet.Limits`), with what has been used of them by now."""
    return {limit.name: RunLimit(limit.name, limit.used, limit.allowed) for limit in wit.runs.limits()}
