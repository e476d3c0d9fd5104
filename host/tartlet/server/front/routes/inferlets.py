"""Inferlets: upload, list, describe, name, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import json_response
from tartlet.server.front.services import ServicesParam
from tartlet.server.front.shapes import Deleted, InferletList, InferletShape, TagBody, inferlet_fields
from tartlet.server.front.uploads import read_upload

MAX_UPLOAD_BYTES = 1 << 30
"""Of the guard; what a tenant may upload is its limit, which the catalogue knows."""
UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "application/wasm": {"schema": {"type": "string", "format": "binary"}},
            "text/x-python": {"schema": {"type": "string"}},
            "text/javascript": {"schema": {"type": "string"}},
            "text/typescript": {"schema": {"type": "string"}},
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["main", "files"],
                    "properties": {
                        "main": {"type": "string"},
                        "files": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                }
            },
        },
    }
}

router = APIRouter(prefix="/v1/inferlets", tags=["inferlets"])

Ref = Annotated[str, Path(max_length=200, description="An id, its first 12 or more digits, `name` or `name@version`.")]
Name = Annotated[str, Path(max_length=200, description="`name` or `name@version`.")]


@router.post(
    "",
    status_code=201,
    response_model=InferletShape,
    responses={200: {"model": InferletShape, "description": "It was there already."}},
    openapi_extra=UPLOAD,
    summary="Upload an inferlet",
)
@needs("inferlets:write", max_body_bytes=MAX_UPLOAD_BYTES)
async def upload(
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    name: Annotated[str | None, Query(max_length=200, description="`name` or `name@version` for it.")] = None,
) -> Response:
    """Take in a component, or source of one file or several. What is there already is not taken in again."""
    kind, chunks = await read_upload(request, services.settings.max_body_bytes)
    record, is_new = await services.catalogue.upload(caller.tenant, kind, chunks, name)
    return json_response(inferlet_fields(record), 201 if is_new else 200)


@router.get("", response_model=InferletList, summary="List inferlets")
@needs("inferlets:read")
async def list_all(
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[
        str | None, Query(max_length=200, description="The id of the last one of the page before.")
    ] = None,
) -> Response:
    """The tenant's inferlets, the newest first."""
    last = None if after is None else await services.catalogue.get(caller.tenant, after)
    records = await services.storage.inferlets.list(caller.tenant, limit=limit + 1, after=last)
    return json_response(page([inferlet_fields(record) for record in records], limit))


@router.get("/{ref}", response_model=InferletShape, summary="Describe an inferlet")
@needs("inferlets:read")
async def describe(ref: Ref, caller: CallerParam, services: ServicesParam) -> Response:
    """What is known of one inferlet."""
    return json_response(inferlet_fields(await services.catalogue.get(caller.tenant, ref)))


@router.delete("/{ref}", response_model=Deleted, summary="Delete an inferlet")
@needs("inferlets:write")
async def delete(ref: Ref, caller: CallerParam, services: ServicesParam) -> Response:
    """Delete an inferlet and all its names. Runs that have begun go on."""
    record = await services.catalogue.delete(caller.tenant, ref)
    return json_response({"id": record.digest, "object": "inferlet", "deleted": True})


@router.put("/names/{name}", response_model=InferletShape, summary="Name an inferlet")
@needs("inferlets:write")
async def tag(name: Name, body: TagBody, caller: CallerParam, services: ServicesParam) -> Response:
    """Let a name stand for an inferlet, whatever it stood for before."""
    return json_response(inferlet_fields(await services.catalogue.tag(caller.tenant, name, body.inferlet)))


@router.delete("/names/{name}", response_model=Deleted, summary="Delete a name")
@needs("inferlets:write")
async def untag(name: Name, caller: CallerParam, services: ServicesParam) -> Response:
    """Let a name stand for nothing. The inferlet stays."""
    await services.storage.names.untag(caller.tenant, name)
    return json_response({"id": name, "object": "name", "deleted": True})


def page(found: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    """A page of a list, of which one more than fits was looked for."""
    return {"object": "list", "data": found[:limit], "has_more": len(found) > limit}
