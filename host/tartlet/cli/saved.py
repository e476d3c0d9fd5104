"""`tartlet saved`: which contexts a tenant's programs have saved, delete one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tartlet.cli.errors import reporting

saved_app = typer.Typer(no_args_is_help=True, help="List and delete contexts that programs have saved.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Tenant = Annotated[str, typer.Option(help="Whose; `tartlet run` saves those of `local`.")]
SavedPath = Annotated[Path | None, typer.Option(help="The folder; `saved` in TARTLET_HOME if not given.")]


@saved_app.command("list")
@reporting
def list_command(tenant: Tenant = "local", saved_path: SavedPath = None, as_json: AsJson = False) -> None:
    """List the saved contexts of a tenant, with model, tokens, size and time left."""
    import msgspec

    from tartlet import compose
    from tartlet.arguments import checked_tenant

    rows = compose.list_saved(checked_tenant(tenant), saved_path)
    if as_json:
        typer.echo(json.dumps([msgspec.structs.asdict(row) for row in rows], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "model", "adapter", "tokens", "size", "expires in", box=None, pad_edge=False)
    for row in rows:
        seconds = "-" if row.expires_in_ms is None else f"{row.expires_in_ms / 1000:,.0f} s"
        size = f"{row.num_bytes / 1e6:,.1f} MB"
        table.add_row(row.name, row.model, row.adapter or "-", f"{row.num_tokens:,}", size, seconds)
    Console().print(table)


@saved_app.command("rm")
@reporting
def remove(
    name: Annotated[str, typer.Argument(help="A name of the list.")],
    tenant: Tenant = "local",
    saved_path: SavedPath = None,
    as_json: AsJson = False,
) -> None:
    """Delete a saved context. Runs that have opened it keep what they have."""
    from tartlet import compose
    from tartlet.arguments import checked_tenant

    compose.delete_saved(checked_tenant(tenant), name, saved_path)
    typer.echo(json.dumps({"tenant": tenant, "deleted": name}) if as_json else f"deleted {name}")
