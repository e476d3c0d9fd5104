"""Errors as clients see them: a status, and OpenAI's shape of an error, with what to do about it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.websockets import WebSocket

from tartlet.errors import (
    ConfigError,
    ConflictError,
    EngineStoppedError,
    LimitExceededError,
    NotFoundError,
    ProgramError,
    QuotaError,
    RunCancelledError,
    RunError,
    TartletError,
    UnavailableError,
    WorkerLostError,
)
from tartlet.server.raw_json import to_json

logger = logging.getLogger("tartlet.server")

CLIENT_CLOSED_REQUEST = 499
SEE = "/openapi.json tells what there is."
RETRY_SECONDS = 2
"""After which it may help to ask again, when workers or the engine are being started."""
MAX_MESSAGE_LEN = 4000  # characters; a program's traceback can be long

_BY_CODE = {"not_found": 404, "already_exists": 409, "component_too_large": 413, "unsupported_language": 415}
_BY_KIND: tuple[tuple[type[TartletError], int], ...] = (  # the first that fits
    (UnavailableError, 503),
    (NotFoundError, 404),
    (ConflictError, 409),
    (QuotaError, 429),
    (EngineStoppedError, 503),
    (WorkerLostError, 503),
    (RunCancelledError, CLIENT_CLOSED_REQUEST),
    (RunError, 422),
    (ProgramError, 400),
    (ConfigError, 400),
)
_UNREADABLE_BODY = "There was an error parsing the body"
"""FastAPI's words for what Python's JSON gives up on."""
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 499: "cancelled"}


class ApiError(TartletError):
    """A request is refused: with which status, and for which of its parameters.

    Args:
        status: of HTTP, 4xx or 5xx.
        code: for programs, stable.
        message: what is wrong. It must not tell of what is not the client's.
        hint: what to do.
        param: the parameter that is wrong.
        retry_after_s: when asking again may help.
        limit, used, allowed: which limit was reached, and by how much.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        param: str | None = None,
        retry_after_s: float | None = None,
        limit: str | None = None,
        used: float | None = None,
        allowed: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.status = status
        self.param = param
        self.retry_after_s = retry_after_s
        self.limit, self.used, self.allowed = limit, used, allowed


def not_found(what: str, name: str) -> ApiError:
    """The error for what is not there, or is another tenant's, which is the same."""
    return ApiError(404, "not_found", f"there is no {what} {name[:200]!r}")


def status_of(error: TartletError) -> int:
    """The status with which an error is answered."""
    if isinstance(error, ApiError):
        return error.status
    if not isinstance(error, RunError) and error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((status for kind, status in _BY_KIND if isinstance(error, kind)), 500)


def error_fields(error: TartletError) -> dict[str, Any]:
    """What stands under `error` in an answer or an event."""
    status = status_of(error)
    kind = "run_error" if isinstance(error, RunError) else _TYPES.get(status)
    fields: dict[str, Any] = {
        "message": error.message[:MAX_MESSAGE_LEN],
        "type": kind or ("server_error" if status >= 500 else "invalid_request_error"),
        "param": getattr(error, "param", None),
        "code": error.code,
    }
    hint = error.hint
    if isinstance(error, LimitExceededError):
        hint = f'Allow more with "limits": {{"{error.limit}": ...}}, as far as your tenant may.'
    if hint:
        fields["hint"] = hint
    for name in ("limit", "used", "allowed"):
        value = getattr(error, name, None)
        if value is not None:
            fields[name] = value
    return fields


def error_response(error: TartletError) -> Response:
    """The answer to a request that cannot be done."""
    status = status_of(error)
    headers = {}
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is None and status == 503:
        retry_after_s = RETRY_SECONDS
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(retry_after_s + 0.5)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return json_response({"error": error_fields(error)}, status, headers)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON, of ASCII but for `RawJson` in it, so that any text that Python can hold can be sent."""
    return Response(to_json(value), status, headers, media_type="application/json")


def add_error_handlers(app: FastAPI) -> None:
    """Make all errors of an application look alike."""
    app.add_exception_handler(TartletError, _on_tartlet_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(WebSocketRequestValidationError, _on_invalid_handshake)
    app.add_exception_handler(ClientDisconnect, _on_client_gone)
    app.add_exception_handler(Exception, on_fault)


def invalid_request(error: RequestValidationError | WebSocketRequestValidationError) -> ApiError:
    """The first thing that is wrong with a request. What the client sent is not repeated."""
    errors = error.errors()
    first: Mapping[str, Any] = errors[0] if errors else {"loc": (), "msg": "the request is invalid", "type": ""}
    body = getattr(error, "body", None)
    param = ".".join(_place(first, body))[:200] or None
    if first["type"] == "json_invalid":
        return ApiError(400, "invalid_json", "the body is not JSON")
    kind, message, context = first["type"], str(first["msg"])[:500], first.get("ctx", {})
    if kind == "model_attributes_type" and isinstance(body, bytes):  # what is not said to be JSON is not read
        hint = "Send the header `Content-Type: application/json`; `curl --json` does."
        return ApiError(415, "unsupported_media_type", "the body is not said to be JSON", hint=hint)
    if kind == "missing" and tuple(first["loc"]) == ("body",):
        return ApiError(400, "invalid_request", "a body is needed", hint="Send JSON; `{}` says nothing but that.")
    if kind == "extra_forbidden":
        return ApiError(400, "unknown_parameter", f"there is no parameter {param!r} here", hint=SEE, param=param)
    if kind == "union_tag_invalid":
        message = f"{context['discriminator']} must be one of {context['expected_tags']}"
    return ApiError(400, "invalid_request", f"{param}: {message}" if param else message, param=param)


def _place(first: Mapping[str, Any], body: Any) -> list[str]:
    """Where in the request something is wrong, without the names that pydantic has for kinds of a field's value."""
    source, *loc = first["loc"] or ("",)
    if source != "body":
        return [str(part) for part in loc]
    place: list[str] = []
    for number, part in enumerate(loc):
        is_there = part in body if isinstance(body, dict) else isinstance(part, int) and isinstance(body, list)
        if is_there:
            body = body[part]
        if is_there or (first["type"] == "missing" and number == len(loc) - 1):
            place.append(str(part))
    return place


async def _on_tartlet_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, TartletError)
    return error_response(error)


async def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 408: "timeout", 413: "body_too_large"}
    messages = {404: "there is nothing at this address", 405: "the method is not for this address"}
    message = messages.get(error.status_code, str(error.detail))
    hint = SEE if error.status_code in messages else ""
    code = codes.get(error.status_code, "invalid_request")
    if message == _UNREADABLE_BODY:
        code = "invalid_json"
        message = "the body is JSON that cannot be read: too deep, with a number of too many digits, or no Unicode"
    response = error_response(ApiError(error.status_code, code, message, hint=hint))
    response.headers.update(error.headers or {})
    return response


async def _on_invalid_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return error_response(invalid_request(error))


async def _on_invalid_handshake(websocket: WebSocket, error: Exception) -> None:
    assert isinstance(error, WebSocketRequestValidationError)
    await websocket.send_denial_response(error_response(invalid_request(error)))


async def _on_client_gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads it; the log has its status."""
    return error_response(ApiError(CLIENT_CLOSED_REQUEST, "client_closed_request", "the client is gone"))


async def on_fault(request: Request, error: Exception) -> Response:
    """A fault of ours: the log has its trace, the client the request's id."""
    request_id = getattr(request.state, "request_id", "")
    logger.error("fault", exc_info=error, extra={"request_id": request_id})
    return error_response(ApiError(500, "internal", f"internal error, request {request_id}"))
