"""`tartlet check`: what a component imports and exports, how large it is, and whether this host would run it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.cli.errors import CANNOT_LOAD
from tartlet.cli.safe_text import safe_text
from tartlet.errors import InvalidComponentError, ProgramError

if TYPE_CHECKING:
    from tartlet.wasm.component_reader import ComponentSummary, Extern


def check(
    component: Annotated[Path, typer.Argument(help="A component (.wasm).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what a component imports and exports, how large it is, and whether this host would run it."""
    from tartlet.contract import contract
    from tartlet.wasm.component_reader import describe

    try:
        data = component.read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read {component}: {error.strerror}", code="not_found") from None
    summary = describe(data)
    problem: InvalidComponentError | None = None
    world = contract().world_of(data)
    try:
        contract().check_component(data, world)
    except InvalidComponentError as error:
        problem = error
    if as_json:
        typer.echo(json.dumps({"world": world, **_as_json(summary, problem)}, indent=2))
    else:
        _print(component, world, summary)
        if problem is None:
            typer.echo("this host would run it")
    if problem is None:
        return
    if not as_json:
        raise problem
    raise typer.Exit(CANNOT_LOAD)


def _as_json(summary: ComponentSummary, problem: InvalidComponentError | None) -> dict[str, object]:
    from dataclasses import asdict

    found = None if problem is None else {"code": problem.code, "message": problem.message, "hint": problem.hint}
    return {**asdict(summary), "is_ok": problem is None, "problem": found}


def _print(component: Path, world: str, summary: ComponentSummary) -> None:
    code = summary.code
    rows = {
        "file": str(component),
        "world": world,
        "size": f"{summary.size_bytes:,} bytes",
        "code": f"{code.num_functions:,} functions in {code.num_modules:,} modules, {code.code_bytes:,} bytes, "
        f"the largest function {code.largest_function_bytes:,}",
        "imports": _listed([extern for extern in summary.imports if not extern.name.startswith("wasi:")]),
        "wasi": _listed([extern for extern in summary.imports if extern.name.startswith("wasi:")]),
        "exports": _listed(summary.exports),
    }
    for name, text in rows.items():
        typer.echo(f"{name:<9}{safe_text(text)}")


def _listed(externs: Sequence[Extern]) -> str:
    return f"\n{'':<9}".join(f"{extern.name} ({extern.kind})" for extern in externs) or "nothing"
