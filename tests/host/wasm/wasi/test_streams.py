"""wasi:io/streams: the standard streams."""

from __future__ import annotations

import pytest

from tartlet.wasm.fiber import Fiber
from tartlet.wasm.host_function import Err
from tartlet.wasm.wasi import wasi_interfaces
from tartlet.wasm.wasi.state import STDERR, STDIN, STDOUT, wasi_state

STREAMS = wasi_interfaces()["wasi:io/streams"]


def test_output_arrives_in_whole_characters(fiber: Fiber) -> None:
    """A character that is cut off by a write arrives with the next one, on each stream by itself."""
    texts: list[str] = []
    fiber.wasi_output = texts.append
    write = STREAMS["[method]output-stream.write"]
    write(fiber, STDOUT, "né".encode()[:2])
    write(fiber, STDERR, b"err\xff\n")
    write(fiber, STDOUT, "né\n".encode()[2:])

    assert texts == ["n", "err\ufffd\n", "é\n"]


def test_output_that_nobody_wants(fiber: Fiber) -> None:
    """Without an owner that listens, output goes nowhere."""
    STREAMS["[method]output-stream.write"](fiber, STDOUT, b"hello")
    STREAMS["[method]output-stream.blocking-flush"](fiber, STDOUT)


def test_writes_are_bounded(fiber: Fiber) -> None:
    """A guest is told to write a few kilobytes at once."""
    assert STREAMS["[method]output-stream.check-write"](fiber, STDOUT) == 4096


def test_input_is_closed(fiber: Fiber) -> None:
    """Reading standard input meets its end, and waiting for it does not wait."""
    with pytest.raises(Err) as caught:
        STREAMS["[method]input-stream.read"](fiber, STDIN, 100)
    assert caught.value.value == ("closed", None)

    pollable = STREAMS["[method]input-stream.subscribe"](fiber, STDIN)
    assert wasi_state(fiber).deadlines[pollable] == 0
