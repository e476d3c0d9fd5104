"""What a tenant has used, by day."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import json_response
from tartlet.server.front.services import ServicesParam
from tartlet.server.front.shapes import UsageList

router = APIRouter(prefix="/v1", tags=["usage"])
MOST_DAYS = 400


@router.get("/usage", response_model=UsageList, summary="What has been used")
@needs("runs:read")
async def usage(
    caller: CallerParam,
    services: ServicesParam,
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="How many days back, today included.")] = 30,
) -> Response:
    """What the tenant's runs that have ended used, by the day in UTC on which they ended, the newest first."""
    records = await services.storage.usage.read(caller.tenant, days=days)
    data: list[dict[str, Any]] = [msgspec.to_builtins(record) for record in records]
    return json_response({"object": "list", "data": data})
