"""The command tree of `tartlet`."""

from __future__ import annotations

import io
import json
import sys
from typing import Annotated

import typer

import tartlet
from tartlet.cli.backup import backup, restore
from tartlet.cli.build import build
from tartlet.cli.check import check
from tartlet.cli.config import config_app
from tartlet.cli.doctor import doctor
from tartlet.cli.errors import reporting
from tartlet.cli.key import key_app
from tartlet.cli.models import models_app
from tartlet.cli.new import new
from tartlet.cli.run import run
from tartlet.cli.saved import saved_app
from tartlet.cli.serve import serve
from tartlet.cli.tenant import tenant_app
from tartlet.cli.usage import usage

app = typer.Typer(
    name="tartlet",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run sandboxed programs (inferlets) right next to a language model.",
    epilog="Exit codes: 0 done, 1 the program failed, 2 wrong use, 3 a limit was exceeded, 4 a program or model "
    "cannot be loaded, 70 a fault of Tartlet's own, 130 cancelled.",
)
for command in (run, serve, build, check, new):
    app.command()(reporting(command))
app.add_typer(models_app, name="models")
app.add_typer(saved_app, name="saved")
app.add_typer(tenant_app, name="tenant")
app.add_typer(key_app, name="key")
app.command()(reporting(usage))
app.command()(reporting(backup))
app.command()(reporting(restore))
app.add_typer(config_app, name="config")
app.command()(reporting(doctor))


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the version."""
    typer.echo(json.dumps({"version": tartlet.__version__}) if as_json else f"tartlet {tartlet.__version__}")


def main() -> None:
    """Run the command line; never returns."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character still shows the rest
    app()
