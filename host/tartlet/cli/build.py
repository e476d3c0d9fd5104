"""`tartlet build`: make a component of a program's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def build(
    source: Annotated[Path, typer.Argument(help="A .py file, or a folder with a main.py.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The component to write; NAME.wasm here if not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Build a program into a component, to upload or to pass on. It behaves as it does from source."""
    from tartlet import runner
    from tartlet.cli.progress_bars import ProgressBars

    component = output or Path(f"{source.resolve().stem}.wasm")
    with ProgressBars() as progress:
        runner.build_component(source, component, progress)
    size_bytes = component.stat().st_size
    if as_json:
        typer.echo(json.dumps({"component": str(component), "size_bytes": size_bytes}))
    else:
        typer.echo(f"{component}: {size_bytes / 1e6:.1f} MB")
