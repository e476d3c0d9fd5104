"""One line in the log for each request, under an id that the client hears, too."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected

from tartlet.server.front.errors import CLIENT_CLOSED_REQUEST
from tartlet.server.front.metrics import Metrics

logger = logging.getLogger("tartlet.requests")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"})
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class RequestLog:
    """Gives each request an id, which is the client's own if that is short and plain, and logs how it went."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        began = time.monotonic()
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnected:
            status = CLIENT_CLOSED_REQUEST
        finally:
            caller = state.get("caller")
            seconds = time.monotonic() - began
            method, route = scope.get("method", "WEBSOCKET"), getattr(scope.get("route"), "path", None)
            self._metrics.request(route or "none", method if method in _METHODS else "OTHER", status, seconds)
            fields = {
                "request_id": request_id,
                "tenant": getattr(caller, "tenant", None),
                "key_id": getattr(caller, "key_id", None),
                "method": method[:20],
                "route": route,
                "status": status,
                "duration_ms": round(seconds * 1000, 1),
            }
            logger.info("request", extra=fields)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _PLAIN_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"
