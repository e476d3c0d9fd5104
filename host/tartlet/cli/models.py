"""`tartlet models`: which there are, fetch one, delete one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tartlet.cli.errors import reporting

models_app = typer.Typer(no_args_is_help=True, help="List, fetch and delete models.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@models_app.command("list")
@reporting
def list_command(as_json: AsJson = False) -> None:
    """List the models that are known, with state, size, licence and source."""
    from dataclasses import asdict

    from tartlet import models

    rows = models.list_models()
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "state", "size", "licence", "source", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        size = f"{row.size_bytes / 1e6:,.0f} MB" if row.size_bytes else "-"
        table.add_row(row.name, str(row.state), size, row.licence, row.source)
    Console().print(table)
    typer.echo("Any Hugging Face id (organisation/name), local folder or .gguf file can be used as well.", err=True)


@models_app.command()
@reporting
def pull(
    name: Annotated[str, typer.Argument(help="A name of the list, a Hugging Face id, a folder or a .gguf file.")],
    as_json: AsJson = False,
) -> None:
    """Fetch and convert a model, so that later runs start at once; print the folder it lies in."""
    from tartlet import models
    from tartlet.cli.progress_bars import ProgressBars

    with ProgressBars() as progress:
        folder = models.pull(name, progress)
    typer.echo(json.dumps({"name": name, "folder": str(folder)}) if as_json else str(folder))


@models_app.command("rm")
@reporting
def remove(name: Annotated[str, typer.Argument(help="A name of the list.")], as_json: AsJson = False) -> None:
    """Delete what is stored of a model. Folders and files of your own are never touched."""
    from tartlet import models

    freed_bytes = models.remove(name)
    typer.echo(json.dumps({"freed_bytes": freed_bytes}) if as_json else f"freed {freed_bytes / 1e6:,.0f} MB")
