"""`tartlet new`: a program to start from, which runs as it is."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from tartlet.errors import ConfigError

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name is the program's name.")],
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
    for template in files("tartlet").joinpath("templates", "python").iterdir():
        text = template.read_text(encoding="utf-8")
        path = folder / template.name.removesuffix(".template")
        if path.suffix == ".md":
            text = text.format(name=name, folder=folder)
        path.write_text(text, encoding="utf-8")
        written.append(str(path))
    if as_json:
        typer.echo(json.dumps({"name": name, "files": sorted(written)}))
    else:
        typer.echo(f"made {', '.join(sorted(written))}\nrun it: tartlet run {folder}")
