"""What the front asks of whoever runs programs. As msgspec structs, these cross a socket or stay in a process."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

ProgramKind: TypeAlias = Literal["component", "source"]


class ProgramRef(msgspec.Struct, frozen=True):
    """A program, and where it lies. Whoever runs it must be able to read that file."""

    digest: str
    """SHA-256 of what was uploaded, in hexadecimal. It names the program everywhere."""
    path: str
    """The file: a component, or a `SourceFile` as JSON; once it is compiled, what a compile child has made of it."""
    kind: ProgramKind
    name: str
    """What it is called in logs and errors."""
    tenant: str = ""
    """Whose it is. Empty: the server's own, which is run as it is."""
    is_controller: bool = False
    """Of a component that is compiled: which of the two kinds it is."""
    is_compiled: bool = False
    """Programs of tenants must be."""


class SourceFile(msgspec.Struct, frozen=True):
    """Source as it is stored: one file, whose digest names it. Its language is that of its main module's suffix."""

    main: str
    """The name of the module that is run, without a suffix."""
    files: dict[str, str]
    """Text by path in the program's folder, with `/`."""


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a Python inferlet, which its input gives by name."""

    name: str
    is_required: bool
    annotation: str = ""
    """As it stands in the source."""
    default: str = ""
    """As it stands in the source; empty: there is none."""


class ProgramFacts(msgspec.Struct, frozen=True):
    """What is known of a program once it has been loaded."""

    is_inferlet: bool
    is_controller: bool
    imports: tuple[str, ...] = ()
    """Interfaces with their versions, sorted; of source, those that the runner imports are not told."""
    parameters: tuple[Parameter, ...] | None = None
    """None: they cannot be told, as of components."""
    description: str = ""
    """What the program's own documentation begins with."""


class Control(msgspec.Struct, frozen=True):
    """A generation that a controller steers, instead of a run of an inferlet."""

    prompt: str
    config_json: str = "null"
    chat: bool = False
    """The prompt is a user's message, which the model's chat template writes out."""
    max_tokens: int | None = None
    temperature: float = 0.0


class RunRequest(msgspec.Struct, frozen=True):
    """A run to start."""

    run_id: str
    tenant: str
    program: ProgramRef
    input_json: str
    limits: dict[str, int | None]
    """Fields of `tartlet.Limits`; what is not named has its default."""
    seed: int | None = None
    """None: drawn."""
    weight: float = 1.0
    """The tenant's share of the engine against others'."""
    control: Control | None = None
    """Set: the program is a controller, and `input_json` counts for nothing."""
    programs: dict[str, ProgramRef] = {}
    """What the program can ask for by name, as `name` or `name@version`."""
