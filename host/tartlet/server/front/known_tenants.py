"""What tenants may use now: what the operator has set for each, over what the server gives to all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tartlet.component_limits import EMBEDDED, ComponentLimits
from tartlet.server.front.limits import TenantLimits, tenant_limits
from tartlet.server.front.storage import Storage, TenantRecord

MOST_KEPT = 1000


class KnownTenants:
    """The limits of tenants, made once for each setting of them.

    Args:
        storage: has what the operator has set.
        server_limits: what all tenants have.

    Raises:
        ConfigError: the server's limits are none.
    """

    def __init__(self, storage: Storage, server_limits: Mapping[str, int | None]) -> None:
        self._storage = storage
        self._server_limits = dict(server_limits)
        self._kept: dict[str, tuple[TenantRecord, TenantLimits]] = {}
        tenant_limits(self._server_limits)

    async def get(self, tenant: str) -> tuple[TenantRecord, TenantLimits]:
        """A tenant and its limits, as they are set now. Raises NotFoundError."""
        record = await self._storage.tenants.get(tenant)
        return record, self.limits_of(record)

    async def component_limits(self, tenant: str) -> ComponentLimits:
        """What may be in a tenant's components. Their size has been bounded when they came in.

        Raises NotFoundError.
        """
        _, limits = await self.get(tenant)
        return replace(limits.component, max_size_bytes=EMBEDDED.max_size_bytes)

    def limits_of(self, record: TenantRecord) -> TenantLimits:
        """The limits of a tenant that has just been read."""
        kept = self._kept.get(record.name)
        if kept is None or kept[0] != record:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            kept = self._kept[record.name] = (record, tenant_limits(self._server_limits, record.limits))
        return kept[1]
