"""`tartlet build`: make a component of a program's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def build(
    source: Annotated[Path, typer.Argument(help="A source file, or a folder with a main file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The component to write; NAME.wasm here if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Build a program into a component, to upload or to pass on. It behaves as it does from source."""
    from tartlet.cli.progress_bars import ProgressBars
    from tartlet.languages.registry import language_of

    language = language_of(source)
    component = output or Path(f"{source.resolve().stem}.wasm")
    with ProgressBars() as progress:
        language.build_component(source, component, progress)
    size_bytes = component.stat().st_size
    if as_json:
        typer.echo(json.dumps({"component": str(component), "language": language.name, "size_bytes": size_bytes}))
    else:
        typer.echo(f"{component}: {_size(size_bytes)}")


def _size(num_bytes: int) -> str:
    """A component's size, for people: they are from 4 kB to 30 MB."""
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:.0f} kB"
