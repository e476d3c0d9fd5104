from __future__ import annotations

import httpx2


async def test_the_description_needs_no_key(client_of) -> None:  # type: ignore[no-untyped-def]
    """It tells of all addresses, and of nothing that is the tenants'."""
    client: httpx2.AsyncClient = client_of("")
    described = (await client.get("/openapi.json")).json()

    assert described["openapi"].startswith("3.")
    assert "/health/live" in described["paths"]
