"""`tartlet check`: what a component is, how much is in it, and whether this host, or a server, would run it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.cli.errors import CANNOT_LOAD
from tartlet.cli.safe_text import safe_text
from tartlet.component_limits import COUNTED, EMBEDDED, ComponentCounts, ComponentLimits
from tartlet.errors import InvalidComponentError, ProgramError

if TYPE_CHECKING:
    from tartlet.wasm.component_reader import Extern

_UPLOADED = ComponentLimits()


def check(
    component: Annotated[Path, typer.Argument(help="A component (.wasm).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what a component is, how much is in it, and whether this host would run it."""
    from tartlet.contract import contract
    from tartlet.wasm.component_counts import count_component
    from tartlet.wasm.component_reader import read_externs

    try:
        data = component.read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read {component}: {error.strerror}", code="not_found") from None
    counts, _ = count_component(data, EMBEDDED)
    imports, exports = read_externs(data)
    world = contract().world_of(data)
    problem: InvalidComponentError | None = None
    try:
        contract().check_component(data, world)
    except InvalidComponentError as error:
        problem = error
    if as_json:
        typer.echo(json.dumps(_as_json(world, counts, imports, exports, problem), indent=2))
        if problem is not None:
            raise typer.Exit(CANNOT_LOAD)
        return
    _print(component, world, imports, exports)
    _print_counts(counts)
    if problem is not None:
        raise problem
    typer.echo("this host would run it")


def _as_json(
    world: str,
    counts: ComponentCounts,
    imports: Sequence[Extern],
    exports: Sequence[Extern],
    problem: InvalidComponentError | None,
) -> dict[str, object]:
    found = None if problem is None else {"code": problem.code, "message": problem.message, "hint": problem.hint}
    return {
        "world": world,
        "imports": [asdict(extern) for extern in imports],
        "exports": [asdict(extern) for extern in exports],
        "counts": {
            name: {"used": used, "allowed": EMBEDDED.of(name), "allowed_in_uploads": _UPLOADED.of(name)}
            for name, used in asdict(counts).items()
        },
        "exceeds_uploads": _exceeded(counts),
        "is_ok": problem is None,
        "problem": found,
    }


def _print(component: Path, world: str, imports: Sequence[Extern], exports: Sequence[Extern]) -> None:
    rows = {
        "file": str(component),
        "world": world,
        "imports": _listed([extern for extern in imports if not extern.name.startswith("wasi:")]),
        "wasi": _listed([extern for extern in imports if extern.name.startswith("wasi:")]),
        "exports": _listed(exports),
    }
    for name, text in rows.items():
        typer.echo(f"{name:<9}{safe_text(text)}")


def _print_counts(counts: ComponentCounts) -> None:
    """Print what is in a component against what a server allows in uploads, unless its operator says otherwise."""
    exceeded = _exceeded(counts)
    rows = [
        (COUNTED[name].text, f"{used:,}", f"{_UPLOADED.of(name):,}", "  too much" if name in exceeded else "")
        for name, used in asdict(counts).items()
    ]
    names, used_width, allowed_width = (max(len(row[column]) for row in rows) for column in range(3))
    typer.echo(f"\n{'':<{names}}  {'it has':>{used_width}}  {'a server allows':>{max(15, allowed_width)}}")
    for name, used_text, allowed_text, remark in rows:
        typer.echo(f"{name:<{names}}  {used_text:>{used_width}}  {allowed_text:>{max(15, allowed_width)}}{remark}")
    typer.echo("")
    if exceeded:
        limits = ", ".join(f"max_{name}" for name in exceeded)
        typer.echo(f"a server would refuse it, unless its operator allows more of {limits}; source needs no such leave")


def _exceeded(counts: ComponentCounts) -> list[str]:
    return [name for name, used in asdict(counts).items() if used > _UPLOADED.of(name)]


def _listed(externs: Sequence[Extern]) -> str:
    return f"\n{'':<9}".join(f"{extern.name} ({extern.kind})" for extern in externs) or "nothing"
