"""`tartlet config`: the server's settings as they are."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tartlet.cli.errors import reporting
from tartlet.cli.serve import Config

config_app = typer.Typer(no_args_is_help=True, help="The server's settings.")


@config_app.command("show")
@reporting
def show(config: Config = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every setting of the server, and where its value comes from. Secrets are hidden."""
    from tartlet.cli.server_settings import load_settings
    from tartlet.server import settings

    loaded = load_settings(config=config)
    shown = loaded.shown()
    if as_json:
        file = None if loaded.file is None else str(loaded.file)
        typer.echo(json.dumps({"file": file, "settings": shown}, indent=2))
        return
    typer.echo(f"file: {loaded.file or 'none'}")
    for name, field in settings.Settings.model_fields.items():
        value, origin = shown[name]["value"], shown[name]["origin"]
        text = "not set" if value is None else json.dumps(value, ensure_ascii=False)
        typer.echo(f"{name} = {text}  ({origin})  {field.description}")
