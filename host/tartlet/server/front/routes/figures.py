"""The server's figures, for Prometheus."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from tartlet.server.front.auth import needs, public
from tartlet.server.front.routes.health import is_ready
from tartlet.server.front.services import Services, ServicesParam

router = APIRouter(tags=["health"])
open_router = APIRouter(tags=["health"])
"""Instead of `router`, if the operator has opened the figures to everybody."""

TEXT = {"text/plain": {"schema": {"type": "string"}}}
FIGURES: dict[int | str, dict[str, Any]] = {200: {"description": "The figures.", "content": TEXT}}


@router.get("/metrics", response_class=Response, responses=FIGURES, summary="Figures for Prometheus")
@needs("admin")
async def metrics(services: ServicesParam) -> Response:
    """What has been counted since the server was started, and how the engine is. They tell of all tenants."""
    return await _figures(services)


@open_router.get("/metrics", response_class=Response, responses=FIGURES, summary="Figures for Prometheus")
@public
async def open_metrics(services: ServicesParam) -> Response:
    """The same, without a key."""
    return await _figures(services)


async def _figures(services: Services) -> Response:
    stats = await services.sandboxes.engine_stats()
    text = services.metrics.text(stats, is_ready=is_ready(services), loop_lag_s=services.loop_lag.take_max())
    return Response(text, media_type=CONTENT_TYPE_LATEST)
