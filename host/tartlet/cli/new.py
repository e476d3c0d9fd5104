"""`tartlet new`: a program to start from, which runs as it is."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from tartlet.errors import ConfigError


class Template(StrEnum):
    """What there is a template of."""

    INFERLET = "inferlet"
    CONTROLLER = "controller"


FOLDERS = {Template.INFERLET: "python", Template.CONTROLLER: "python_controller"}
COMMANDS = {
    Template.INFERLET: "tartlet run {folder}",
    Template.CONTROLLER: 'tartlet run --controller {folder} --prompt "Count: 1, 2, 3," --max-tokens 20',
}
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name is the program's name.")],
    template: Annotated[
        Template, typer.Option(help="What it is: an inferlet, or a controller, which steers generations of others.")
    ] = Template.INFERLET,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a new program: a folder with a template that runs as it is."""
    name = folder.resolve().name
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a program", hint="Use letters, digits, _ and -; a letter first.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already", hint="Choose another name.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for file in files("tartlet").joinpath("templates", FOLDERS[template]).iterdir():
        text = file.read_text(encoding="utf-8")
        path = folder / file.name.removesuffix(".template")
        if path.suffix == ".md":
            text = text.format(name=name, folder=folder)
        path.write_text(text, encoding="utf-8")
        written.append(str(path))
    if as_json:
        typer.echo(json.dumps({"name": name, "files": sorted(written)}))
    else:
        command = COMMANDS[template].format(folder=folder)
        typer.echo(f"made {', '.join(sorted(written))}\nrun it: {command}")
