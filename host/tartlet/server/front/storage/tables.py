"""The tables. Times are milliseconds since 1970 in UTC, and structures are JSON: the same in SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()


def _tenant_column(*, is_key: bool = True) -> Column[str]:
    return Column("tenant", String(64), ForeignKey("tenants.name"), primary_key=is_key, nullable=not is_key)


tenants = Table(
    "tenants",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("weight", Float, nullable=False),
    Column("limits", Text, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("deleted_ms", BigInteger),  # the row stays: a deleted tenant's name is not given out again
    Column("revision", BigInteger, nullable=False, server_default="0"),  # see `remembered.py`
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", String(32), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    _tenant_column(is_key=False),
    Column("label", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
    Column("last_used_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    Column("replaced_by", String(32)),
)

inferlets = Table(
    "inferlets",
    metadata,
    _tenant_column(),
    Column("digest", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("num_bytes", BigInteger, nullable=False),
    Column("facts", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

names = Table(
    "names",
    metadata,
    _tenant_column(),
    Column("name", String(160), primary_key=True),  # `name` or `name@version`
    Column("base", String(64), nullable=False),  # without the version
    Column("digest", String(64), nullable=False),
    Column("tagged_ms", BigInteger, nullable=False),
    ForeignKeyConstraint(["tenant", "digest"], ["inferlets.tenant", "inferlets.digest"], ondelete="CASCADE"),
    Index("names_by_base", "tenant", "base"),
    Index("names_by_digest", "tenant", "digest"),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(100), primary_key=True),
    _tenant_column(is_key=False),
    Column("digest", String(64), nullable=False),  # of an inferlet that may have been deleted meanwhile
    Column("name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("failure", Text),
    Column("result_json", Text),
    Column("note", Text, nullable=False),
    Column("usage", Text),
    Index("runs_by_time", "tenant", "started_ms"),
    Index("runs_by_state", "state", "ended_ms"),
)

usage = Table(
    "usage",
    metadata,
    _tenant_column(),
    Column("day", String(10), primary_key=True),  # 2026-12-01, in UTC
    Column("runs", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("generated_tokens", BigInteger, nullable=False),
    Column("cpu_ms", Float, nullable=False),
    Column("wall_ms", Float, nullable=False),
    Column("host_calls", BigInteger, nullable=False),
    Column("page_seconds", Float, nullable=False, server_default="0"),
)

idempotency = Table(
    "idempotency",
    metadata,
    _tenant_column(),
    Column("key", String(255), primary_key=True),
    Column("request_hash", String(64), nullable=False),
    Column("run_id", String(100), nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
    Index("idempotency_by_expiry", "expires_ms"),
)

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))
