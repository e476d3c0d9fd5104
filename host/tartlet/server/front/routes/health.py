"""Whether the server lives, has started, and can take requests."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from tartlet.server.front.auth import public
from tartlet.server.front.errors import json_response
from tartlet.server.front.services import Services, ServicesParam

router = APIRouter(tags=["health"])


@router.get("/health/live", summary="The process answers")
@public
async def live() -> Response:
    """200 as long as the process answers at all; if it does not, it should be started again."""
    return json_response({"status": "live"})


@router.get("/health/startup", summary="The first start is done")
@public
async def startup(services: ServicesParam) -> Response:
    """200 once the model has been loaded."""
    return _answer(bool(services.sandboxes.models), "started", "starting")


@router.get("/health/ready", summary="Runs can be started")
@public
async def ready(services: ServicesParam) -> Response:
    """200 while there are workers, and an engine that makes progress, and the server is not being shut down."""
    return _answer(is_ready(services), "ready", "draining" if services.runs.is_draining else "not_ready")


def is_ready(services: Services) -> bool:
    """Whether runs can be started."""
    return services.sandboxes.is_ready and not services.runs.is_draining


def _answer(is_so: bool, yes: str, no: str) -> Response:
    return json_response({"status": yes if is_so else no}, 200 if is_so else 503)
