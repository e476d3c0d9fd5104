"""`tartlet tenant`: who shares a server, and what each may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.cli.errors import reporting
from tartlet.cli.with_storage import AsJson, DatabaseUrl, print_json, print_table, shown_time, with_storage

if TYPE_CHECKING:
    from tartlet.server.front.storage import TenantRecord

tenant_app = typer.Typer(no_args_is_help=True, help="Create tenants of the server, and set what they may use.")

Name = Annotated[str, typer.Argument(help="The tenant.")]
Limit = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", help="As kv_pages=4000 or tokens=none. Repeatable."),
]


@tenant_app.command()
@reporting
def create(
    name: Annotated[str, typer.Argument(help="1 to 63 of a-z, 0-9, '-' and '_'.")],
    weight: Annotated[float, typer.Option(help="Its share of the engine against others'.")] = 1.0,
    limit: Limit = None,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a tenant. It needs a key to do anything."""
    from tartlet.server.front.limits import parse_settings

    limits = parse_settings(limit or [])
    record = with_storage(database, lambda storage: storage.tenants.create(name, weight=weight, limits=limits))
    _print(record, as_json, f"created {name}; tartlet key create --tenant {name} makes a key")


@tenant_app.command("list")
@reporting
def list_command(database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """List the tenants, with their weights and the limits that are set for them."""
    records = with_storage(database, lambda storage: storage.tenants.list())
    if as_json:
        print_json(records)
        return
    rows = [
        (each.name, f"{each.weight:g}", _state(each), shown_time(each.created_ms), _shown_limits(each.limits))
        for each in records
    ]
    print_table(("name", "weight", "state", "created", "limits"), rows)


@tenant_app.command()
@reporting
def show(name: Name, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Show a tenant with all of its limits, and say which were set for it."""
    import msgspec

    from tartlet.server.front.limits import all_settings, tenant_limits

    record = with_storage(database, lambda storage: storage.tenants.get(name))
    holding = all_settings(tenant_limits(record.limits))
    if as_json:
        print_json({**msgspec.to_builtins(record), "holding_limits": holding})
        return
    typer.echo(f"{record.name}: weight {record.weight:g}, {_state(record)}, created {shown_time(record.created_ms)}")
    rows = [
        (setting, _shown_holding(setting, value), "set for it" if setting in record.limits else "")
        for setting, value in holding.items()
    ]
    print_table(("limit", "value", ""), rows)


@tenant_app.command("set")
@reporting
def set_command(
    name: Name,
    weight: Annotated[float | None, typer.Option(help="Its share of the engine against others'.")] = None,
    limit: Limit = None,
    reset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Let a limit be the server's again. Repeatable.")
    ] = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether its keys are accepted.")] = None,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Change a tenant. A server that is running goes by it at once."""
    from tartlet.server.front.limits import parse_settings, setting_name

    limits, dropped = parse_settings(limit or []), tuple(setting_name(each) for each in reset or [])
    record = with_storage(
        database,
        lambda storage: storage.tenants.change(name, weight=weight, limits=limits, reset=dropped, is_enabled=enable),
    )
    _print(record, as_json, f"{name}: weight {record.weight:g}, {_state(record)}, {_shown_limits(record.limits)}")


@tenant_app.command()
@reporting
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete a tenant with its keys and programs. Its name is not given out again; what it used stays on record."""
    if not yes:
        typer.confirm(f"Delete the tenant {name} for good?", abort=True, err=True)
    with_storage(database, lambda storage: storage.tenants.delete(name))
    if as_json:
        print_json({"deleted": name})
        return
    typer.echo(f"deleted {name}")


def _print(record: TenantRecord, as_json: bool, text: str) -> None:
    if as_json:
        print_json(record)
    else:
        typer.echo(text)


def _state(record: TenantRecord) -> str:
    return "enabled" if record.is_enabled else "disabled"


def _shown(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


def _shown_holding(setting: str, value: int | None) -> str:
    """As it holds: without a limit of its own, a tenant may upload what the server takes at most."""
    return "max_upload_bytes" if setting == "upload_bytes" and value is None else _shown(value)


def _shown_limits(limits: dict[str, int | None]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in limits.items()) or "limits of the server"
