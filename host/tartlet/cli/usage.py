"""`tartlet usage`: what tenants have used."""

from __future__ import annotations

from typing import Annotated

import typer

from tartlet.cli.with_storage import AsJson, DatabaseUrl, print_json, print_table, with_storage


def usage(
    tenant: Annotated[str | None, typer.Option(help="Whose; everybody's if not given.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How many days, today included.")] = 30,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show what runs that have ended used, by day (in UTC) and tenant."""
    records = with_storage(database, lambda storage: storage.usage.read(tenant, days=days))
    if as_json:
        print_json(records)
        return
    rows = [
        (
            each.day,
            each.tenant,
            f"{each.runs:,}",
            f"{each.failures:,}",
            f"{each.prompt_tokens:,}",
            f"{each.cached_tokens:,}",
            f"{each.generated_tokens:,}",
            f"{each.page_seconds:,.1f}",
            f"{each.cpu_ms / 1000:,.1f}",
            f"{each.wall_ms / 1000:,.1f}",
            f"{each.host_calls:,}",
        )
        for each in records
    ]
    figures = ("runs", "failed", "prompt", "cached", "generated", "page s", "CPU s", "wall s", "host calls")
    print_table(("day", "tenant", *figures), rows, numbers_from=2)
