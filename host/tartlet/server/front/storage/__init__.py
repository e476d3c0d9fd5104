"""What the server remembers: tenants, keys, inferlets, runs, usage. In SQLite, or in PostgreSQL."""

from tartlet.server.front.storage.idempotency import Claim
from tartlet.server.front.storage.inferlets import InferletRecord
from tartlet.server.front.storage.keys import SCOPES, TENANT_SCOPES, Caller, KeyRecord, NewKey
from tartlet.server.front.storage.names import NameRecord
from tartlet.server.front.storage.opening import Storage, default_url, open_storage
from tartlet.server.front.storage.runs import RunRecord
from tartlet.server.front.storage.tenants import DEFAULT_TENANT, TenantRecord
from tartlet.server.front.storage.usage import UsageRecord

__all__ = [
    "DEFAULT_TENANT",
    "SCOPES",
    "TENANT_SCOPES",
    "Caller",
    "Claim",
    "InferletRecord",
    "KeyRecord",
    "NameRecord",
    "NewKey",
    "RunRecord",
    "Storage",
    "TenantRecord",
    "UsageRecord",
    "default_url",
    "open_storage",
]
