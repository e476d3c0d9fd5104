"""Inferlets that answer HTTP: each request is a run, whose input is the request and whose result is the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from tartlet.errors import RunCancelledError
from tartlet.server.front.auth import CallerParam, needs
from tartlet.server.front.errors import ApiError, error_fields, json_response
from tartlet.server.front.following import unless_gone, wait_for
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.served import Served
from tartlet.server.front.services import ServicesParam
from tartlet.server.front.shapes import ServedInferlet, ServedList

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
SAFETY = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
"""What a tenant's program answers is no page of the server's own."""
PROGRAM_FAILED = 502

_HIDDEN = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
"""Credentials, which the program does not get."""
_OURS = frozenset(
    {
        *(
            "connection",
            "content-length",
            "date",
            "keep-alive",
            "proxy-authenticate",
            "server",
            "set-cookie",
            "trailer",
        ),
        *("transfer-encoding", "upgrade", "www-authenticate", "x-request-id", "x-run-id"),
        *(name.lower() for name in SAFETY),
    }
)
"""What the program does not say."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]{0,4000}")
_MOST_HEADERS = 50
_BODILESS = frozenset({204, 205, 304})
"""Answers that have no body in HTTP; what a program gives them is left out."""

router = APIRouter(prefix="/v1/serve", tags=["serve"])
Name: TypeAlias = Annotated[str, Path(max_length=200, description="An inferlet: its name, or its id.")]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What a program returns to say more than a body."""

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] = 200
    headers: Annotated[dict[str, str], msgspec.Meta(max_length=_MOST_HEADERS)] = {}
    body: msgspec.Raw = msgspec.Raw(b'""')
    """A text, or what is sent as JSON."""


async def serve(name: Name, path: str, request: Request, caller: CallerParam, services: ServicesParam) -> Response:
    """Run the inferlet with the input `{"request": {"method", "path", "query", "headers", "body"}}`.

    What it returns is the answer: a text; or any JSON; or an object with `status`, `headers` and `body`, some of them.
    """
    program = await services.catalogue.runnable(caller.tenant, name)
    given = {"request": {**_described(request, path), "body": await _body(request)}}
    run = await unless_gone(request, services.runs.start(caller.tenant, program, json.dumps(given), label=name))
    with services.served.noted(run, request.method, f"/{path}"):
        await wait_for(run, request)
    return _answer(run)


async def serve_root(name: Name, request: Request, caller: CallerParam, services: ServicesParam) -> Response:
    """The same, for the path `/`."""
    return await serve(name, "", request, caller, services)


@router.get("", response_model=ServedList, summary="List what is being answered")
@needs("runs:read")
async def list_served(caller: CallerParam, services: ServicesParam) -> Response:
    """The requests that the tenant's inferlets answer now, by inferlet, as it was asked for."""
    by_name: dict[str, list[Served]] = {}
    for served in services.served.of(caller.tenant):
        by_name.setdefault(served.run.program, []).append(served)
    data = [_served_fields(name, served) for name, served in by_name.items()]
    return json_response({"object": "list", "data": data})


@router.delete("", response_model=ServedInferlet, summary="Stop answering")
@needs("runs:start")
async def stop_serving(
    caller: CallerParam,
    services: ServicesParam,
    name: Annotated[str, Query(max_length=200, description="An inferlet, as it was asked for.")],
) -> Response:
    """Cancel the runs in which an inferlet answers requests now; their clients get 502. New requests are answered."""
    served = services.served.of(caller.tenant, name)
    for each in served:
        each.run.cancel(RunCancelledError("the inferlet was stopped"))
    return json_response(_served_fields(name, served))


for _method in METHODS:  # one each, so that each has a name of its own in the description
    for _path, _endpoint in (("/{name}", serve_root), ("/{name}/{path:path}", serve)):
        router.add_api_route(
            _path,
            needs("runs:start")(_endpoint),
            methods=[_method],
            response_class=Response,
            name=f"{_endpoint.__name__}_{_method.lower()}",
            summary="Let an inferlet answer",
        )


def _described(request: Request, path: str) -> dict[str, Any]:
    """A request without its credentials. Of a header or parameter that comes several times, all values count."""
    headers: dict[str, str] = {}
    for header, value in request.headers.items():
        if header not in _HIDDEN:
            headers[header] = f"{headers[header]}, {value}" if header in headers else value
    query: dict[str, list[str]] = {}
    for key, value in request.query_params.multi_items():
        query.setdefault(key, []).append(value)
    return {"method": request.method, "path": f"/{path}", "query": query, "headers": headers}


def _served_fields(name: str, served: Sequence[Served]) -> dict[str, Any]:
    requests = [
        {"run": each.run.run_id, "method": each.method, "path": each.path, "created": each.run.created_ms / 1000}
        for each in served
    ]
    return {"name": name, "object": "served_inferlet", "requests": requests}


async def _body(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError:
        raise ApiError(415, "unsupported_media_type", "the body is not UTF-8 text") from None


def _answer(run: LiveRun) -> Response:
    outcome = run.outcome
    assert outcome is not None
    error = outcome.error()
    if error is not None:
        return json_response({"error": error_fields(error)}, PROGRAM_FAILED, {"x-run-id": run.run_id})
    try:
        answer = _read_answer((outcome.result_json or "null").encode())
        headers = _headers(answer.headers)
    except (msgspec.ValidationError, ValueError) as wrong:
        failure = ApiError(PROGRAM_FAILED, "invalid_answer", f"what the program returned is no answer: {wrong}")
        return json_response({"error": error_fields(failure)}, PROGRAM_FAILED, {"x-run-id": run.run_id})
    body = bytes(answer.body)
    is_text = body.startswith(b'"')
    if is_text:
        body = json.loads(body).encode("utf-8", "replace")
    names = {name.lower() for name in headers}
    if "content-type" not in names:
        headers["Content-Type"] = "text/plain; charset=utf-8" if is_text else "application/json"
    if answer.status in _BODILESS:
        body = b""
    return Response(body, answer.status, {**headers, **SAFETY, "x-run-id": run.run_id})


def _read_answer(result: bytes) -> Answer:
    """What a program's result, as JSON, says. A body that is no text is passed on as it is, however large.

    Raises ValidationError.
    """
    if result.startswith(b"{"):
        fields = msgspec.json.decode(result, type=dict[str, msgspec.Raw])
        if fields and fields.keys() <= {"status", "headers", "body"}:
            return msgspec.json.decode(result, type=Answer)
    return Answer(body=msgspec.Raw(result))


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers that a program may send. Raises ValueError for what is none."""
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the header {name[:100]!r} cannot be sent")
    return {name: value for name, value in given.items() if name.lower() not in _OURS}
