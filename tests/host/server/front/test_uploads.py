from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request

from tartlet.server.front.errors import ApiError
from tartlet.server.front.uploads import MOST_FILES, read_upload


def request_of(body: bytes, media_type: str) -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request({"type": "http", "headers": [(b"content-type", media_type.encode())]}, receive)


async def uploaded(body: bytes, media_type: str, max_bytes: int = 1000) -> tuple[str, bytes]:
    kind, chunks = await read_upload(request_of(body, media_type), max_bytes)
    return kind, b"".join([chunk async for chunk in chunks])


async def test_a_component_is_passed_on() -> None:
    """As it is, of any length: what is stored is bounded elsewhere."""
    assert await uploaded(b"\0asm" * 1000, "application/wasm") == ("component", b"\0asm" * 1000)


@pytest.mark.parametrize("body", [b"", b"\0as", b"x = 1\n", b"\0ASM1234"])
async def test_what_is_no_component(body: bytes) -> None:
    """It is refused by its first bytes, with a word on how source is sent."""
    with pytest.raises(ApiError, match="not a WebAssembly component") as error:
        await uploaded(body, "application/wasm")
    assert (error.value.status, error.value.code) == (400, "not_a_component")
    assert "text/x-python" in (error.value.hint or "")


async def test_source_is_one_file() -> None:
    """However it came, the same source is the same file."""
    kind, text = await uploaded(b"x = 1\n", "text/x-python")
    wrapped = json.dumps({"files": {"main.py": "x = 1\n"}, "main": "main"}, indent=1).encode()

    assert kind == "source"
    assert (await uploaded(wrapped, "application/json"))[1] == text
    assert (await uploaded(b"\xef\xbb\xbfx = 1\n", "text/x-python"))[1] == text


async def test_source_is_bounded() -> None:
    """In bytes and in files."""
    with pytest.raises(ApiError) as error:
        await uploaded(b"x" * 1001, "text/x-python")
    assert (error.value.status, error.value.allowed) == (413, 1000)
    files = {f"m{index}.py": "" for index in range(MOST_FILES + 1)}
    with pytest.raises(ApiError, match="501 files"):
        await uploaded(json.dumps({"main": "m0", "files": files}).encode(), "application/json", 10**6)


@pytest.mark.parametrize(
    "name", ["../a.py", "/a.py", "a\\b.py", "a/../b.py", "a.txt", "", ".py", "a//b.py", "a\0.py", "x" * 200 + ".py"]
)
async def test_names_that_no_file_has(name: str) -> None:
    """They are refused, wherever programs are kept."""
    body = json.dumps({"main": "main", "files": {"main.py": "", name: ""}}).encode()
    with pytest.raises(ApiError, match="cannot be a file"):
        await uploaded(body, "application/json")
