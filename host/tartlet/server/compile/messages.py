"""What the front writes to a compile child, and what it reads from it: one line of JSON each."""

from __future__ import annotations

import msgspec

from tartlet.component_limits import ComponentCounts, ComponentLimits
from tartlet.errors import InvalidComponentError
from tartlet.server.failures import Failure
from tartlet.server.requests import ProgramFacts, ProgramKind


class CompileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What compiling one program may use. A Python component takes 13 s of CPU time and 600 MB of address space."""

    cpu_s: int = 30
    wall_s: float = 120.0
    """From the start of the child. Other processes may keep it from its CPU time."""
    memory_bytes: int = 1 << 30
    """Address space. For source, memory to write to: the sandbox that compiles it reserves gigabytes of addresses."""
    file_bytes: int = 1 << 29
    """Of what is made."""


class CompileJob(msgspec.Struct, frozen=True, kw_only=True):
    """A program to compile."""

    path: str
    """A component, or a `SourceFile` as JSON."""
    kind: ProgramKind
    folder: str
    """Where what is made is kept, under a name that begins with the SHA-256 of the file."""
    component: ComponentLimits
    """What may be in it, if it is a component."""
    limits: CompileLimits
    parent: int
    """The process that waits for it: the child ends with it."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A program that workers can load now."""

    facts: ProgramFacts
    code_path: str
    """What was made of it."""
    counts: ComponentCounts | None = None
    """Of a component."""


class CompileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How it went: one of the two."""

    compiled: Compiled | None = None
    failure: Failure | None = None


def memory_limit_error(limits: CompileLimits) -> InvalidComponentError:
    """The error for a program that takes too much memory to compile."""
    return limit_error(f"{limits.memory_bytes:,} bytes of memory")


def limit_error(allowed: str) -> InvalidComponentError:
    """The error for a program that takes more to compile than is allowed."""
    return InvalidComponentError(
        f"compiling the program takes more than {allowed}",
        hint="Make it of less code. A Python program takes least as source.",
        code="compile_limit",
    )
