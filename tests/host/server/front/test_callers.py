from __future__ import annotations

import pytest

from tartlet.errors import QuotaError
from tartlet.server.front.admission import Admission
from tartlet.server.front.callers import authenticating
from tartlet.server.front.services import Services


async def test_whose_key_it_is(services: Services) -> None:
    """A tenant's key is its tenant's; an operator's acts for the built-in tenant, and may everything."""
    keys = services.storage.keys
    of_acme, operators = await keys.create("acme"), await keys.create(None)
    authenticate = authenticating(services.storage, services.catalogue.tenants, Admission())
    acme, operator = await authenticate(of_acme.token), await authenticate(operators.token)

    assert acme is not None
    assert operator is not None
    assert (acme.tenant, acme.key_id) == ("acme", of_acme.record.key_id)
    assert acme.may(["runs:start"])
    assert not acme.may(["admin"])
    assert (operator.tenant, operator.may(["runs:start"])) == ("default", True)


async def test_whose_key_is_not_valid(services: Services) -> None:
    """Unknown keys, and those of a tenant that the operator has disabled."""
    made = await services.storage.keys.create("acme")
    await services.storage.tenants.change("acme", is_enabled=False)
    authenticate = authenticating(services.storage, services.catalogue.tenants, Admission())

    assert await authenticate(made.token) is None
    assert await authenticate("tlk_" + "0" * 48) is None


async def test_too_many_requests(services: Services) -> None:
    """They are a tenant's own matter; an operator's are not counted."""
    await services.storage.tenants.change("acme", limits={"requests_per_minute": 2})
    keys = services.storage.keys
    acme, globex, operators = await keys.create("acme"), await keys.create("globex"), await keys.create(None)
    authenticate = authenticating(services.storage, services.catalogue.tenants, Admission())
    for _ in range(2):
        await authenticate(acme.token)
    with pytest.raises(QuotaError) as error:
        await authenticate(acme.token)
    assert error.value.code == "rate_limited"
    assert error.value.retry_after_s is not None
    for other in (globex, operators):
        for _ in range(3):
            assert await authenticate(other.token) is not None
