"""Requests whose `input` is large: it is passed on as it was sent, instead of being parsed and written again."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from tartlet.server.raw_json import RawJson, checked_json

LEAST_BYTES = 64 * 1024
"""Of a body whose input is not parsed. Parsing a smaller one holds up nobody."""


class LargeInputRoute(APIRoute):
    """A route whose body may have a large field `input`, which its function then gets as `RawJson`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Called by FastAPI."""
        handle = super().get_route_handler()

        async def handle_large(request: Request) -> Response:
            return await handle(_LargeInput(request.scope, request.receive))

        return handle_large


class _LargeInput(Request):
    async def json(self) -> Any:
        """The body. Whatever is unusual in it is left to the usual way."""
        body = await self.body()
        if len(body) >= LEAST_BYTES:
            try:
                fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
                return {name: _value(name, bytes(raw)) for name, raw in fields.items()}
            except (ValueError, RecursionError):
                pass
        return await super().json()


def _value(name: str, raw: bytes) -> Any:
    return RawJson(checked_json(raw.decode())) if name == "input" else json.loads(raw)
