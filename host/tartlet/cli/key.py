"""`tartlet key`: what clients of the server show to say who they are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tartlet.cli.errors import reporting
from tartlet.cli.with_storage import (
    AsJson,
    DatabaseUrl,
    parse_duration,
    print_json,
    print_table,
    shown_time,
    with_storage,
)
from tartlet.errors import ConfigError

if TYPE_CHECKING:
    from tartlet.server.front.storage import KeyRecord, NewKey

key_app = typer.Typer(no_args_is_help=True, help="Create API keys of the server, and revoke them.")

KeyId = Annotated[str, typer.Argument(help="What the key begins with, as `tartlet key list` shows it.")]
Tenant = Annotated[str | None, typer.Option(help="Whose; `default` if not given.")]


@key_app.command()
@reporting
def create(
    tenant: Tenant = None,
    operator: Annotated[bool, typer.Option("--operator", help="A key for operators, which may do everything.")] = False,
    scope: Annotated[list[str] | None, typer.Option(help="What it is good for; all if not given. Repeatable.")] = None,
    expires: Annotated[str | None, typer.Option(help="After which time, as 90d or 12h; never if not given.")] = None,
    label: Annotated[str, typer.Option(help="What you call it.")] = "",
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a key, and print it: this once, for only its hash is kept."""
    from tartlet.server.front.storage import DEFAULT_TENANT

    if operator and tenant is not None:
        raise ConfigError("an operator's key has no tenant", hint="Give --operator or --tenant.")
    whose = None if operator else tenant or DEFAULT_TENANT
    lifetime_ms = None if expires is None else parse_duration(expires)
    made = with_storage(
        database, lambda storage: storage.keys.create(whose, scopes=scope, label=label, lifetime_ms=lifetime_ms)
    )
    _print_new(made, as_json)


@key_app.command("list")
@reporting
def list_command(
    tenant: Annotated[str | None, typer.Option(help="Whose; everybody's if not given.")] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Only those of operators.")] = False,
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List keys by what they begin with, the newest first."""
    from tartlet.server.front.storage import TENANT_SCOPES

    records = with_storage(database, lambda storage: storage.keys.list(tenant, of_operators=operator))
    if as_json:
        print_json(records)
        return
    rows = [
        (
            each.key_id,
            each.tenant or "(operator)",
            each.label or "-",
            "all" if set(each.scopes) >= set(TENANT_SCOPES) else " ".join(each.scopes),
            shown_time(each.created_ms)[:10],
            shown_time(each.last_used_ms)[:10],
            _state(each),
        )
        for each in records
    ]
    print_table(("key", "tenant", "label", "scopes", "created", "last used", "state"), rows)


@key_app.command()
@reporting
def rotate(
    key: KeyId,
    grace: Annotated[str, typer.Option(help="How long the old one stays valid, as 24h or 0s.")] = "24h",
    database: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Create a key in place of another, for the same, and print it; both are valid for a while."""
    grace_ms = parse_duration(grace)
    _print_new(with_storage(database, lambda storage: storage.keys.rotate(key, grace_ms=grace_ms)), as_json)


@key_app.command()
@reporting
def revoke(key: KeyId, database: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Make a key invalid, at once and for good."""
    record = with_storage(database, lambda storage: storage.keys.revoke(key))
    if as_json:
        print_json(record)
        return
    typer.echo(f"revoked {record.key_id}")


def _print_new(made: NewKey, as_json: bool) -> None:
    if as_json:
        print_json({"key": made.token, "record": made.record})
        return
    typer.echo(made.token)
    whose = "an operator" if made.record.tenant is None else made.record.tenant
    typer.echo(f"a key of {whose} for {', '.join(made.record.scopes)}; it is not shown again", err=True)


def _state(record: KeyRecord) -> str:
    if record.revoked_ms is not None:
        return f"revoked {shown_time(record.revoked_ms)}"
    if record.expires_ms is None:
        return "valid"
    has_expired = record.expires_ms <= time.time() * 1000
    rotated = "" if record.replaced_by is None else f", rotated into {record.replaced_by}"
    return f"{'expired' if has_expired else 'valid until'} {shown_time(record.expires_ms)}{rotated}"
