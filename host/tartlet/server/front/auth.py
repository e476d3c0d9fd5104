"""Who asks, and whether they may: an API key stands for a tenant and some scopes. What no scope allows is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from fastapi import Depends
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from tartlet.errors import TartletError
from tartlet.server.front.errors import ApiError, error_response

KeyScope: TypeAlias = Literal["runs:start", "runs:read", "inferlets:write", "inferlets:read", "openai", "admin"]
"""What a key can be good for. `admin` includes all others; it alone allows what tells of all tenants."""

PUBLIC = "public"
"""Instead of scopes: for everybody, without a key."""
MAX_KEY_LEN = 256  # characters
BODY_TIMEOUT_S = 30.0
"""How long a client may send nothing of a body that it has begun."""

_NEEDS = "__tartlet_needs__"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    tenant: str
    scopes: frozenset[str]
    key_id: str = ""
    """Which of the tenant's keys; for logs."""

    def may(self, scopes: Sequence[str]) -> bool:
        """Whether the key has one of these scopes."""
        return "admin" in self.scopes or not self.scopes.isdisjoint(scopes)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route needs."""

    scopes: tuple[str, ...]
    max_body_bytes: int | None = None
    """None: the server's setting."""


Authenticate: TypeAlias = Callable[[str], Awaitable[Caller | None]]
"""From an API key to whose it is; None if it is nobody's, or not any more."""


def needs(*scopes: KeyScope, max_body_bytes: int | None = None) -> Callable[[Endpoint], Endpoint]:
    """Declare what a route needs: a key with one of these scopes. It stands below the route's own decorator.

    Args:
        scopes: one of them is enough.
        max_body_bytes: the longest body that is read, if not the server's setting.
    """
    return _declaring(Needs(scopes, max_body_bytes))


def public(endpoint: Endpoint) -> Endpoint:
    """Declare that a route is for everybody."""
    return _declaring(Needs((PUBLIC,)))(endpoint)


def needs_of(route: BaseRoute) -> Needs | None:
    """What a route has declared; None: nothing, so it is refused."""
    return getattr(getattr(route, "endpoint", None), _NEEDS, None)


async def caller_of(connection: HTTPConnection) -> Caller:
    """Who asks. Only routes that need a scope have one. Were it no coroutine, FastAPI would call it in a thread."""
    caller: Caller = connection.state.caller
    return caller


CallerParam: TypeAlias = Annotated[Caller, Depends(caller_of)]


class Guard:
    """Lets through only what a key allows, and bodies that are not too long. It is asked before a body is read.

    Args:
        app: what it guards.
        routes: of the whole application.
        authenticate: finds a key's tenant.
        max_body_bytes: of requests whose route says nothing else.
    """

    def __init__(
        self, app: ASGIApp, routes: Sequence[BaseRoute], authenticate: Authenticate, max_body_bytes: int
    ) -> None:
        self._app = app
        self._routes = routes
        self._authenticate = authenticate
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is refused, and pass on the rest."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        max_body_bytes = self._max_body_bytes
        try:
            route = self._route_of(scope)
            if route is not None:  # what has none is answered by the router: there is no such address or method
                declared = await self._admit(route, scope)
                max_body_bytes = declared.max_body_bytes or max_body_bytes
            _check_length(scope, max_body_bytes)
        except TartletError as error:
            await _refuse(error, scope, receive, send)
            return
        await self._app(scope, receive if scope["type"] == "websocket" else _bounded(receive, max_body_bytes), send)

    def _route_of(self, scope: Scope) -> BaseRoute | None:
        return next((route for route in self._routes if route.matches(scope)[0] is Match.FULL), None)

    async def _admit(self, route: BaseRoute, scope: Scope) -> Needs:
        declared = needs_of(route)
        if declared is None or not declared.scopes:
            raise ApiError(403, "permission_denied", "this address is not open to anybody")
        if PUBLIC not in declared.scopes:
            caller = await self._caller(HTTPConnection(scope).headers.get("authorization", ""))
            scope.setdefault("state", {})["caller"] = caller
            if not caller.may(declared.scopes):
                allowed = " or ".join(f"`{name}`" for name in declared.scopes)
                hint = "The server's operator can make a key that has it: tartlet key create"
                raise ApiError(403, "permission_denied", f"the API key lacks the scope {allowed}", hint=hint)
        return declared

    async def _caller(self, header: str) -> Caller:
        kind, _, key = header.partition(" ")
        key = key.strip()
        if kind.lower() != "bearer" or not key:
            hint = "Send the header `Authorization: Bearer KEY`."
            raise ApiError(401, "missing_api_key", "an API key is needed", hint=hint)
        caller = await self._authenticate(key) if len(key) <= MAX_KEY_LEN else None
        if caller is None:
            raise ApiError(401, "invalid_api_key", "the API key is not valid, or not any more")
        return caller


def _declaring(declared: Needs) -> Callable[[Endpoint], Endpoint]:
    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _NEEDS, declared)
        return endpoint

    return declare


def _check_length(scope: Scope, allowed: int) -> None:
    length = HTTPConnection(scope).headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise ApiError(400, "invalid_request", "the header Content-Length is no number")
    if len(length) > 18 or int(length) > allowed:
        raise ApiError(413, "body_too_large", f"a body of {length[:30]} bytes, at most {allowed:,} are allowed")


def _bounded(receive: Receive, allowed: int) -> Receive:
    """Count the bytes of a body that comes without its length; stop reading when there are too many, or none come."""
    num_bytes = 0
    is_whole = False

    async def counted() -> Message:
        nonlocal num_bytes, is_whole
        try:
            async with asyncio.timeout(None if is_whole else BODY_TIMEOUT_S):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"the body did not come: nothing for {BODY_TIMEOUT_S:g} s") from None
        num_bytes += len(message.get("body", b"")) if message["type"] == "http.request" else 0
        is_whole = not message.get("more_body", False)
        if num_bytes > allowed:
            raise HTTPException(413, f"the body is longer than the {allowed:,} bytes that are allowed")
        return message

    return counted


async def _refuse(error: TartletError, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(error)
    if scope["type"] == "websocket":
        await WebSocket(scope, receive, send).send_denial_response(response)
    else:
        await response(scope, receive, send)
