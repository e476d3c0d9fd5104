"""What the commands for operators share: the server's database, times, and tables."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tartlet.errors import ConfigError

if TYPE_CHECKING:
    from tartlet.server.front.storage import Storage

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DatabaseUrl = Annotated[
    str | None, typer.Option("--database", help="URL or file of the database; the server's own if not given.")
]
T = TypeVar("T")

_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WIDEST = 10_000  # characters of a table; it takes no more than it needs
_DURATION = re.compile(r"(\d{1,9})([smhd])")


def with_storage(url: str | None, work: Callable[[Storage], Awaitable[T]]) -> T:
    """Do work on the database that is named, or else on that of the server's settings. A server may be using it.

    Raises: ConfigError, UnavailableError; and what `work` raises.
    """
    from tartlet.server.front.storage import open_storage

    url = database_url(url)

    async def run() -> T:
        async with open_storage(url) as storage:
            return await work(storage)

    return asyncio.run(run())


def database_url(url: str | None) -> str | None:
    """The database that is named, or else that of the server's settings; None: the default one. Raises ConfigError."""
    from tartlet.server import settings

    if url is not None:
        return url
    secret = settings.load().settings.database
    return None if secret is None else secret.get_secret_value()


def parse_duration(text: str) -> int:
    """Milliseconds of a time such as `30d`, `12h`, `90m` or `10s`. Raises ConfigError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"{text!r} is no time", hint="Give days, hours, minutes or seconds: 30d, 12h, 90m, 10s.")
    return int(found[1]) * _UNITS_MS[found[2]]


def shown_time(time_ms: int | None) -> str:
    """A time for people, in UTC."""
    return "-" if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def print_json(value: Any) -> None:
    """Print a record, or several."""
    import msgspec

    typer.echo(json.dumps(msgspec.to_builtins(value), indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers_from: int | None = None) -> None:
    """Print rows under their columns; columns from `numbers_from` on are numbers.

    A row is one line, however long: so a key or a day can be copied, and looked for with grep.
    """
    from rich.console import Console
    from rich.table import Table

    from tartlet.cli.safe_text import safe_text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        is_number = numbers_from is not None and number >= numbers_from
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(safe_text(cell) for cell in row))
    Console(highlight=False, markup=False, width=_WIDEST).print(table)
