from __future__ import annotations

from typing import Any

import httpx2


async def test_the_description_needs_no_key(client_of: Any) -> None:
    """It tells of all addresses, and of nothing that is the tenants'."""
    client: httpx2.AsyncClient = client_of("")
    described = (await client.get("/openapi.json")).json()

    assert described["openapi"].startswith("3.")
    assert "/v1/inferlets/{ref}/runs" in described["paths"]
    assert (await client.get("/openapi.json")).json() == described


async def test_every_operation_tells_its_errors_and_its_key(client: httpx2.AsyncClient) -> None:
    """In our shape; what needs no key says so by saying nothing."""
    described = (await client.get("/openapi.json")).json()
    operations = {
        (method, path): operation for path, item in described["paths"].items() for method, operation in item.items()
    }

    assert len(operations) > 20
    assert all("4XX" in each["responses"] and "422" not in each["responses"] for each in operations.values())
    assert operations["post", "/v1/inferlets/{ref}/runs"]["x-scopes"] == ["runs:start"]
    assert "security" not in operations["get", "/health/live"]
    assert "HTTPValidationError" not in str(described)
