"""Whose key it is, as the storage knows it; and whether that tenant may ask now."""

from __future__ import annotations

from tartlet.server.front.admission import Admission
from tartlet.server.front.auth import Authenticate, Caller
from tartlet.server.front.known_tenants import KnownTenants
from tartlet.server.front.storage import DEFAULT_TENANT, Storage


def authenticating(storage: Storage, tenants: KnownTenants, admission: Admission) -> Authenticate:
    """What the guard asks for each request.

    An operator's key acts for the built-in tenant, and its requests are not counted. A tenant's are, and refused with a
    QuotaError when there are too many. The keys of a disabled tenant are nobody's.
    """

    async def authenticate(token: str) -> Caller | None:
        found = await storage.keys.authenticate(token)
        if found is None:
            return None
        tenant, scopes = found.tenant, frozenset(found.key.scopes)
        if tenant is None:
            return Caller(DEFAULT_TENANT, scopes, found.key.key_id)
        if not tenant.is_enabled:
            return None
        admission.admit_request(tenant.name, tenants.limits_of(tenant))
        return Caller(tenant.name, scopes, found.key.key_id)

    return authenticate
