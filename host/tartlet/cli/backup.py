"""`tartlet backup` and `tartlet restore`: what the server keeps, copied for safekeeping, and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.cli.with_storage import DatabaseUrl, database_url

if TYPE_CHECKING:
    from tartlet.server.front.storage.backup import Copied

Folder = Annotated[Path, typer.Argument(help="The folder of the copy.", show_default=False)]


def backup(folder: Folder, database: DatabaseUrl = None) -> None:
    """Copy the server's database and its uploaded programs into a folder. The server may be running."""
    from tartlet.server.front.storage.backup import back_up, database_file

    typer.echo(_shown(back_up(database_file(database_url(database)), _blobs(), folder), f"copied to {folder}"))


def restore(folder: Folder, database: DatabaseUrl = None) -> None:
    """Put a copy in the place of the server's database, which is kept beside it. The server must be stopped."""
    from tartlet.server.front.storage import backup as copies

    file = copies.database_file(database_url(database), must_exist=False)
    typer.echo(_shown(copies.restore(folder, file, _blobs()), f"restored {file}"))


def _blobs() -> Path:
    from tartlet import paths

    return paths.server_folder() / "blobs"


def _shown(copied: Copied, what: str) -> str:
    missing = f"; of {copied.missing:,} more there is no file" if copied.missing else ""
    return f"{what}, with {copied.programs:,} programs{missing}"
