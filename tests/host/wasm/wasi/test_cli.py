"""wasi:cli: the environment of a program."""

from __future__ import annotations

import pytest

from tartlet.errors import GuestError
from tartlet.wasm.fiber import Fiber
from tartlet.wasm.wasi import wasi_interfaces

WASI = wasi_interfaces()


def test_nothing_is_told(fiber: Fiber) -> None:
    """There is no environment, no argument, no directory and no terminal."""
    environment = WASI["wasi:cli/environment"]

    assert environment["get-environment"](fiber) == []
    assert environment["get-arguments"](fiber) == []
    assert environment["initial-cwd"](fiber) is None
    for stream in ("stdin", "stdout", "stderr"):
        assert WASI[f"wasi:cli/terminal-{stream}"][f"get-terminal-{stream}"](fiber) is None


def test_streams_differ(fiber: Fiber) -> None:
    """The three standard streams are three."""
    assert len({WASI[f"wasi:cli/{stream}"][f"get-{stream}"](fiber) for stream in ("stdin", "stdout", "stderr")}) == 3


@pytest.mark.parametrize(("status", "word"), [((True, None), "success"), ((False, None), "failure")])
def test_exit_is_an_error(fiber: Fiber, status: tuple[bool, None], word: str) -> None:
    """A program that exits has no result, which is its error, and it is told so."""
    with pytest.raises(GuestError, match=f"called exit .with {word}"):
        WASI["wasi:cli/exit"]["exit"](fiber, status)
