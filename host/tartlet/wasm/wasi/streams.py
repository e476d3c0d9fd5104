"""wasi:io/streams: standard output and error go to the fiber's owner, standard input is closed."""

from __future__ import annotations

from typing import NoReturn

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err, Interfaces
from tartlet.wasm.wasi.state import new_pollable, wasi_state

_MAX_WRITE_BYTES = 4096
"""What a guest may write at once. A list<u8> costs the host 85 bytes for each of its own."""

_ALWAYS_NS = 0


def _read(_fiber: Fiber, _stream: int, _size: int) -> NoReturn:
    raise Err(("closed", None))


def _check_write(_fiber: Fiber, _stream: int) -> int:
    return _MAX_WRITE_BYTES


def _write(fiber: Fiber, stream: int, data: bytes) -> None:
    """Hand whole characters to the owner; what is not UTF-8 becomes U+FFFD."""
    text = wasi_state(fiber).decoders[stream].decode(data)
    if text and fiber.wasi_output is not None:
        fiber.wasi_output(text)


def _flush(_fiber: Fiber, _stream: int) -> None:
    """Do nothing: what is written has arrived."""


def _subscribe(fiber: Fiber, _stream: int) -> int:
    return new_pollable(fiber, _ALWAYS_NS)


def _drop(_fiber: Fiber, _number: int) -> None:
    """Do nothing: the three streams are there as long as the fiber."""


INTERFACES: Interfaces = {
    "wasi:io/error": {"error": _drop},
    "wasi:io/streams": {
        "input-stream": _drop,
        "[method]input-stream.read": _read,
        "[method]input-stream.blocking-read": _read,
        "[method]input-stream.subscribe": _subscribe,
        "output-stream": _drop,
        "[method]output-stream.check-write": _check_write,
        "[method]output-stream.write": _write,
        "[method]output-stream.blocking-write-and-flush": _write,
        "[method]output-stream.flush": _flush,
        "[method]output-stream.blocking-flush": _flush,
        "[method]output-stream.subscribe": _subscribe,
    },
}
