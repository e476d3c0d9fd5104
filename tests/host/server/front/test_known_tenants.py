from __future__ import annotations

import pytest

from tartlet.errors import ConfigError, NotFoundError
from tartlet.server.front.known_tenants import KnownTenants
from tartlet.server.front.services import Services


async def test_a_tenants_limits(services: Services) -> None:
    """Its own go over the server's, and count as soon as they are set."""
    tenants = KnownTenants(services.storage, {"runs_at_once": 3, "names": 5})
    assert (await tenants.get("acme"))[1].runs_at_once == 3
    await services.storage.tenants.change("acme", limits={"runs_at_once": 7})
    record, limits = await tenants.get("acme")

    assert (limits.runs_at_once, limits.names) == (7, 5)
    assert tenants.limits_of(record) is limits
    assert (await tenants.get("globex"))[1].runs_at_once == 3
    with pytest.raises(NotFoundError):
        await tenants.get("nobody")


def test_limits_that_are_none(services: Services) -> None:
    """The server does not start with them."""
    with pytest.raises(ConfigError, match="no limit of a tenant"):
        KnownTenants(services.storage, {"runs_at_onc": 3})
