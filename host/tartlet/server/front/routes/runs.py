"""Runs: start, wait for, follow, list, inspect, cancel."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import ApiError, json_response
from tartlet.server.front.following import stream_of, unless_gone, wait_for
from tartlet.server.front.large_input import LargeInputRoute
from tartlet.server.front.routes.inferlets import Ref, page
from tartlet.server.front.runs import EarlierRun
from tartlet.server.front.services import Services, ServicesParam
from tartlet.server.front.shapes import RunBody, RunList, RunShape, json_text, live_run_fields, run_record_fields
from tartlet.server.front.sse import sse_event
from tartlet.server.front.storage import Claim

CANCEL_WAIT_S = 2.0
"""How long the answer to a cancel waits for the run's end."""
STREAM = {"text/event-stream": {"schema": {"type": "string"}}}

router = APIRouter(prefix="/v1", tags=["runs"], route_class=LargeInputRoute)

RunId = Annotated[str, Path(max_length=100)]
IdempotencyKey = Annotated[str | None, Header(max_length=255, description="Sent again, it starts no second run.")]


@router.post(
    "/inferlets/{ref}/runs",
    response_model=RunShape,
    responses={
        200: {"description": "The run has ended, however; or its events.", "content": STREAM},
        202: {"model": RunShape, "description": "It has started, and goes on."},
    },
    summary="Run an inferlet",
)
@needs("runs:start")
async def start(
    ref: Ref,
    body: RunBody,
    request: Request,
    caller: CallerParam,
    services: ServicesParam,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start a run; wait for its end, follow its events, or let it go on.

    The answer is 200 whether the program succeeds or fails: `status` says which. A run whose client goes is cancelled,
    unless it is `detached` or was not waited for.
    """
    tenant = caller.tenant
    is_stream = body.stream or "text/event-stream" in request.headers.get("accept", "")
    program = await services.catalogue.runnable(tenant, ref, steers=body.control is not None)
    starting = services.runs.start(
        tenant,
        program,
        json_text(body.input, "input"),
        limits=body.limits,
        seed=body.seed,
        control=None if body.control is None else body.control.to_control(),
        programs=await services.catalogue.programs(tenant, body.programs),
        is_detached=body.detached or not (body.wait or is_stream),
        label=ref,
        claim=_claim(idempotency_key, program.digest, body),
    )
    try:
        run = await unless_gone(request, starting)
    except EarlierRun as earlier:
        found = services.runs.get(tenant, earlier.run_id)
        if found is None:
            return await _ended_long_ago(tenant, earlier.run_id, services, is_stream=is_stream)
        run = found
    if is_stream:
        return stream_of(run, services.settings.ping_s)
    if body.wait:
        await wait_for(run, request)
        return json_response(live_run_fields(run))
    return json_response(live_run_fields(run), 202, {"Location": f"/v1/runs/{run.run_id}"})


@router.get("/runs", response_model=RunList, summary="List runs")
@needs("runs:read")
async def list_all(
    caller: CallerParam,
    services: ServicesParam,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[
        str | None, Query(max_length=100, description="The id of the last one of the page before.")
    ] = None,
    status: Literal["running", "succeeded", "failed", "cancelled"] | None = None,
) -> Response:
    """The tenant's runs, the newest first."""
    stored = services.storage.runs
    last = None if after is None else await stored.get(caller.tenant, after)
    records = await stored.list(caller.tenant, state=status, limit=limit + 1, after=last)
    return json_response(page([run_record_fields(record) for record in records], limit))


@router.get("/runs/{run_id}", response_model=RunShape, summary="Inspect a run")
@needs("runs:read")
async def inspect(run_id: RunId, caller: CallerParam, services: ServicesParam) -> Response:
    """How far a run is, or how it has ended."""
    run = services.runs.get(caller.tenant, run_id)
    if run is not None:
        return json_response(live_run_fields(run))
    return json_response(run_record_fields(await services.storage.runs.get(caller.tenant, run_id)))


@router.delete("/runs/{run_id}", response_model=RunShape, summary="Cancel a run")
@needs("runs:start")
async def cancel(run_id: RunId, request: Request, caller: CallerParam, services: ServicesParam) -> Response:
    """End a run soon. No effect if it has ended; the record of it stays."""
    run = services.runs.get(caller.tenant, run_id)
    if run is not None:
        await run.cancel_and_wait(CANCEL_WAIT_S)
    return await inspect(run_id, caller, services)


@router.get(
    "/runs/{run_id}/events",
    response_class=Response,
    responses={200: {"description": "The run's events.", "content": STREAM}},
    summary="Follow a run",
)
@needs("runs:read")
async def events(
    run_id: RunId,
    caller: CallerParam,
    services: ServicesParam,
    after: Annotated[int | None, Query(ge=0, description="The `seq` of the last event that was heard.")] = None,
    last_event_id: Annotated[str | None, Header(max_length=20, description="The same, as browsers send it.")] = None,
) -> Response:
    """Follow a run from any event on. What is not kept any more is told of by an event `dropped`."""
    run = services.runs.get(caller.tenant, run_id)
    if run is None:
        return await _ended_long_ago(caller.tenant, run_id, services, is_stream=True)
    return stream_of(run, services.settings.ping_s, place(after, last_event_id))


def place(after: int | None, last_event_id: str | None) -> int | None:
    """After which event a client wants to go on. Raises ApiError if it is no number."""
    if after is not None or last_event_id is None:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit()):
        raise ApiError(400, "invalid_request", "Last-Event-ID is no number", param="last-event-id")
    return int(last_event_id)


async def _ended_long_ago(tenant: str, run_id: str, services: Services, *, is_stream: bool) -> Response:
    """What is on record of a run, for who asks for its events or its end. Raises NotFoundError."""
    fields = run_record_fields(await services.storage.runs.get(tenant, run_id))
    if not is_stream:
        return json_response(fields)
    data = sse_event("finished", {"type": "finished", "seq": 0, "run": fields})
    return Response(data, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _claim(key: str | None, digest: str, body: RunBody) -> Claim | None:
    if key is None:
        return None
    meant = f"{digest}\n{json_text(body.model_dump(exclude={'wait', 'stream', 'detached'}), 'input')}"
    return Claim(key, hashlib.sha256(meant.encode()).hexdigest())
