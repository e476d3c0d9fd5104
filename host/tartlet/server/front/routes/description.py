"""The interface described, for tools."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from tartlet.server.front.auth import PUBLIC, needs_of, public
from tartlet.server.front.errors import json_response
from tartlet.server.front.shapes import ErrorBody

router = APIRouter(include_in_schema=False)

BEARER = {"type": "http", "scheme": "bearer", "description": "An API key."}


@router.get("/openapi.json")
@public
async def openapi(request: Request) -> Response:
    """The description in the format of OpenAPI 3.1."""
    return json_response(describe(request.app))


def describe(app: FastAPI) -> dict[str, Any]:
    """The description of an application: with our errors instead of FastAPI's, and what keys each route needs."""
    described: dict[str, Any] = app.openapi()
    components = described.setdefault("components", {})
    if "securitySchemes" in components:
        return described
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    error = ErrorBody.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= {**error.pop("$defs"), "ErrorBody": error}
    components["securitySchemes"] = {"key": BEARER}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _complete(described["paths"][route.path_format][method.lower()], route)
    return described


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    responses = operation.setdefault("responses", {})
    responses.pop("422", None)
    responses["4XX"] = {"description": "The request is refused, or cannot be done.", "content": content}
    responses["5XX"] = {"description": "The server, or a program, has failed.", "content": content}
    declared = needs_of(route)
    assert declared is not None
    if PUBLIC not in declared.scopes:
        operation["security"] = [{"key": []}]
        operation["x-scopes"] = [*declared.scopes]
