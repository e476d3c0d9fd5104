"""What clients upload: a component, a source file, or a folder of them as JSON."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

import msgspec
from starlette.requests import Request

from tartlet.errors import BuildError
from tartlet.languages.registry import language_of_files
from tartlet.server.front.catalogue import Kind
from tartlet.server.front.errors import ApiError
from tartlet.server.requests import SourceFile

COMPONENT_TYPES = ("application/wasm", "application/octet-stream")
SOURCE_FILES = {
    "text/x-python": "main.py",
    "text/plain": "main.py",
    "text/javascript": "main.js",
    "application/javascript": "main.js",
    "text/typescript": "main.ts",
    "application/typescript": "main.ts",
}
"""What a single file is called, by the type that it comes as."""
JSON_TYPES = ("application/json",)
WASM_MAGIC = b"\0asm"
MOST_FILES = 500
"""Of one program's source."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
_FILE_NAME = re.compile(rf"({_PART}/){{0,20}}{_PART}")
_MODULE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


async def read_upload(request: Request, max_source_bytes: int) -> tuple[Kind, AsyncIterator[bytes]]:
    """What kind of program a request holds, and the file as it is kept.

    A component is passed on as it comes; source is read whole, and checked.

    Raises: ApiError for another type of content, or source that is none.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in COMPONENT_TYPES:
        return "component", _component(request.stream())
    if media_type in SOURCE_FILES:
        source = SourceFile("main", {SOURCE_FILES[media_type]: _text(await _read(request, max_source_bytes))})
    elif media_type in JSON_TYPES:
        source = _source(await _read(request, max_source_bytes))
    else:
        known = ", ".join((*COMPONENT_TYPES, *SOURCE_FILES, *JSON_TYPES))
        raise ApiError(
            415,
            "unsupported_media_type",
            f"a program does not come as {media_type[:100]!r}",
            hint=f"Send one of {known}.",
        )
    return "source", _once(msgspec.json.encode(source, order="deterministic"))


async def _component(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A component as it comes. Raises ApiError as soon as it is clear that it is something else."""
    begin = b""
    async for chunk in chunks:
        begin += chunk[: len(WASM_MAGIC) - len(begin)]
        if begin != WASM_MAGIC[: len(begin)]:
            break
        yield chunk
    if begin != WASM_MAGIC:
        hint = "Source is sent with a `Content-Type` such as text/x-python or text/typescript."
        raise ApiError(400, "not_a_component", "what was sent is not a WebAssembly component", hint=hint)


async def _read(request: Request, max_bytes: int) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > max_bytes:
            message = f"the source is longer than the {max_bytes:,} bytes that are allowed"
            raise ApiError(413, "component_too_large", message, used=len(data), allowed=max_bytes)
    return bytes(data)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ApiError(400, "invalid_source", f"the source is not UTF-8 at byte {error.start:,}") from None


def _source(data: bytes) -> SourceFile:
    try:
        source = msgspec.json.decode(data, type=SourceFile)
    except (msgspec.DecodeError, RecursionError) as error:
        hint = 'For example: {"main": "main", "files": {"main.py": "..."}}'
        raise ApiError(400, "invalid_source", f"the source cannot be read: {str(error)[:200]}", hint=hint) from None
    if len(source.files) > MOST_FILES:
        message = f"the source has {len(source.files):,} files, at most {MOST_FILES} are allowed"
        raise ApiError(400, "invalid_source", message, used=len(source.files), allowed=MOST_FILES)
    if not _MODULE_NAME.fullmatch(source.main):
        raise ApiError(400, "invalid_source", "`main` names no file of the program", param="main")
    try:
        language = language_of_files(source.main, source.files)
    except BuildError as error:
        raise ApiError(400, "invalid_source", error.message, hint=error.hint, param="main") from None
    if language.source_mode is None:
        message = f"programs in {language.title} are built before they are uploaded"
        raise ApiError(400, "invalid_source", message, hint="Build a component of it: tartlet build", param="main")
    wrong = next((name for name in source.files if not _is_file_name(name, language.suffixes)), None)
    if wrong is not None:
        raise ApiError(400, "invalid_source", f"{wrong[:100]!r} cannot be a file of the program", param="files")
    return source


def _is_file_name(name: str, suffixes: Sequence[str]) -> bool:
    return _FILE_NAME.fullmatch(name) is not None and ".." not in name and name.endswith(tuple(suffixes))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
