from __future__ import annotations

import httpx2

from tartlet.server.front.services import Services


async def test_a_server_that_is_well(client: httpx2.AsyncClient) -> None:
    """It lives, has started and is ready."""
    for name in ("live", "startup", "ready"):
        assert (await client.get(f"/health/{name}")).status_code == 200


async def test_a_server_that_is_being_shut_down(client: httpx2.AsyncClient, services: Services) -> None:
    """It is not ready any more, but lives, so nobody kills it before its runs have ended."""
    await services.runs.drain(0)
    ready = await client.get("/health/ready")

    assert (ready.status_code, ready.json()) == (503, {"status": "draining"})
    assert (await client.get("/health/live")).status_code == 200
