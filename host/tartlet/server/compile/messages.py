"""What the front writes to a compile child, and what it reads from it: one line of JSON each."""

from __future__ import annotations

import msgspec

from tartlet.component_limits import ComponentCounts, ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.server.failures import Failure
from tartlet.server.requests import ProgramFacts


class CompileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What compiling one component may use. A Python component takes 13 s of CPU time and 600 MB of address space."""

    cpu_s: int = 30
    wall_s: float = 120.0
    """From the start of the child. Other processes may keep it from its CPU time."""
    memory_bytes: int = 1 << 30
    """Address space."""
    file_bytes: int = 1 << 29
    """Of native code."""


class CompileJob(msgspec.Struct, frozen=True, kw_only=True):
    """A component to compile."""

    path: str
    component: ComponentLimits
    limits: CompileLimits
    parent: int
    """The process that waits for it: the child ends with it."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A component whose native code is there for workers now."""

    facts: ProgramFacts
    counts: ComponentCounts
    native_path: str
    """The file, whose name has the component's digest in it."""


class CompileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How it went: one of the two."""

    compiled: Compiled | None = None
    failure: Failure | None = None


def memory_limit_error(limits: CompileLimits) -> InvalidComponentError:
    """The error for a component that takes too much memory to compile."""
    return limit_error(f"{limits.memory_bytes:,} bytes of memory")


def limit_error(allowed: str) -> InvalidComponentError:
    """The error for a component that takes more to compile than is allowed."""
    return InvalidComponentError(
        f"compiling the component takes more than {allowed}",
        hint="Build it with less code, or upload a Python program as source.",
        code="compile_limit",
    )
