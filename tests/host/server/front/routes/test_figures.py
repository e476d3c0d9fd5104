from __future__ import annotations

import dataclasses
from typing import Any

import httpx2

from tartlet.server.front.app import create_app
from tartlet.server.front.services import Services
from tartlet.server.settings import Settings


async def test_figures_are_the_operators(client_of: Any) -> None:
    """They tell of all tenants; a tenant's key does not do."""
    await client_of("key-of-acme").get("/health/live")
    text = (await client_of("key-of-admin").get("/metrics")).text

    assert (await client_of("").get("/metrics")).status_code == 401
    assert (await client_of("key-of-acme").get("/metrics")).status_code == 403
    assert "\nvllm:num_requests_waiting 0.0\n" in text
    assert "\ntartlet_engine_healthy 1.0\n" in text
    assert 'tartlet_requests_total{method="GET",route="/health/live",status="200"} 1.0' in text


async def test_addresses_that_are_made_up_are_not_counted_apart(client_of: Any) -> None:
    """Nobody can fill the memory with figures."""
    for index in range(5):
        await client_of("").request("BREW", f"/coffee/{index}")
    text = (await client_of("key-of-admin").get("/metrics")).text

    assert 'tartlet_requests_total{method="OTHER",route="none",status="404"} 5.0' in text
    assert "coffee" not in text


async def test_figures_can_be_opened(services: Services) -> None:
    """If the operator says so."""
    app = create_app(dataclasses.replace(services, settings=Settings(public_metrics=True)))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://server") as client:
        assert (await client.get("/metrics")).status_code == 200
