"""The interface described, for tools."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from tartlet.server.front.auth import public
from tartlet.server.front.errors import json_response

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
@public
async def openapi(request: Request) -> Response:
    """The description in the format of OpenAPI 3.1."""
    return json_response(request.app.openapi())
