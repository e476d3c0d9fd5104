"""`tartlet new`: a program to start from, which runs as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from tartlet.errors import ConfigError
from tartlet.languages.guest_sdk import sdk_folder


class Kind(StrEnum):
    """What there is a template of."""

    INFERLET = "inferlet"
    CONTROLLER = "controller"


class Lang(StrEnum):
    """What languages there is a template in."""

    PYTHON = "python"
    TS = "ts"
    RUST = "rust"
    C = "c"


TEMPLATES = {
    (Lang.PYTHON, Kind.INFERLET): "python",
    (Lang.PYTHON, Kind.CONTROLLER): "python_controller",
    (Lang.TS, Kind.INFERLET): "ts",
    (Lang.RUST, Kind.INFERLET): "rust",
    (Lang.C, Kind.INFERLET): "c",
}
"""Folders of `templates/`. In what is not code, `{name}` and `{folder}` are the program's, `{sdk}` the SDK's folder."""
SDKS = {Lang.PYTHON: "python", Lang.TS: "js", Lang.RUST: "rust", Lang.C: "c"}
"""Folders of the SDKs. What builds a program knows them; editors are told of them."""
COMMANDS = {
    Kind.INFERLET: "tartlet run {folder}",
    Kind.CONTROLLER: 'tartlet run --controller {folder} --prompt "Count: 1, 2, 3," --max-tokens 20',
}
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")
FILLED_IN = (".md", ".toml", ".json", ".txt")


def new(
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name is the program's name.")],
    lang: Annotated[Lang, typer.Option(help="The language it is written in.")] = Lang.PYTHON,
    template: Annotated[
        Kind, typer.Option(help="What it is: an inferlet, or a controller, which steers generations of others.")
    ] = Kind.INFERLET,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a new program: a folder with a template that runs as it is."""
    name = folder.resolve().name
    if not NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no name for a program", hint="Use letters, digits, _ and -; a letter first.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} is there already", hint="Choose another name.")
    if (lang, template) not in TEMPLATES:
        known = ", ".join(known for known, kind in TEMPLATES if kind == template)
        raise ConfigError(f"there is no template of a {template} in {lang}", hint=f"There is one in {known}.")
    values = {"name": name, "folder": str(folder), "sdk": sdk_folder(SDKS[lang]).as_posix()}
    written = sorted(_write(TEMPLATES[lang, template], folder, values))
    command = COMMANDS[template].format(folder=folder)
    if as_json:
        typer.echo(json.dumps({"name": name, "language": lang, "files": written, "run": command}))
    else:
        typer.echo(f"made {', '.join(written)}\nrun it: {command}")


def _write(template: str, folder: Path, values: Mapping[str, str]) -> Iterator[str]:
    """Write the files of a template, and give their paths."""
    for inside, content in _files(files("tartlet").joinpath("templates", template)):
        text = content.read_text(encoding="utf-8")
        path = folder / inside
        if path.suffix in FILLED_IN:
            for name, value in values.items():
                text = text.replace(f"{{{name}}}", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        yield str(path)


def _files(folder: Traversable, inside: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files of a template, each with its path in the folder to make."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{inside}{entry.name}/")
        else:
            yield inside + entry.name.removesuffix(".template"), entry
