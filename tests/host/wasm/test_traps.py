"""Wasmtime's error texts become errors that say what happened."""

from __future__ import annotations

import pytest

from tartlet.errors import GuestTrapError, InvalidHandleError, LimitExceededError
from tartlet.wasm.traps import error_from_trap

TRAP = """error while executing at wasm backtrace:
    0:  0x1234 - libc.so!abort
    1:    0x56 - <unknown>!<wasm function 3>
note: using the `WASMTIME_BACKTRACE_DETAILS=1` environment variable may show more debugging information

Caused by:
    wasm trap: {reason}"""


def error(text: str, *, memory_limit: int | None = None, memory_bytes: int | None = None) -> Exception:
    return error_from_trap(text, memory_limit=memory_limit, memory_bytes=memory_bytes)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("call stack exhausted", "the program recursed too deeply: call stack exhausted"),
        ("out of bounds memory access", "the program used an address outside its memory: out of bounds memory access"),
        ("integer divide by zero", "integer divide by zero"),
    ],
)
def test_reason_and_frames(reason: str, message: str) -> None:
    """The last cause is the reason; frames are listed by name, innermost first, without addresses and notes."""
    found = error(TRAP.format(reason=reason))

    assert isinstance(found, GuestTrapError)
    assert found.message == f"{message}\n  at libc.so!abort\n  at <wasm function 3>"
    assert found.hint == ""


def test_several_causes() -> None:
    """Of numbered causes, the last is the reason."""
    text = "error while executing\n\nCaused by:\n    0: memory fault\n    1: wasm trap: out of bounds memory access"

    assert "out of bounds memory access" in error(text).message  # type: ignore[attr-defined]


def test_long_backtrace() -> None:
    """A long backtrace is cut."""
    frames = "\n".join(f"    {i}:  0x{i:x} - m!f{i}" for i in range(30))
    message = str(error(f"error while executing at wasm backtrace:\n{frames}\n\nCaused by:\n    wasm trap: x"))

    assert message.count("\n  at ") == 8
    assert message.endswith("  ... 22 more")


@pytest.mark.parametrize("reason", ["unknown handle index 7", "handle index 7 used with the wrong type, expected a"])
def test_forged_handle(reason: str) -> None:
    """A handle that the guest does not hold has its own error."""
    assert isinstance(error(TRAP.format(reason=reason)), InvalidHandleError)


def test_not_enough_memory_to_start() -> None:
    """A refused first memory names what is needed and allowed."""
    found = error("memory minimum size of 420 pages exceeds memory limits", memory_limit=16 << 20)

    assert isinstance(found, LimitExceededError)
    assert (found.code, found.used, found.allowed) == ("memory_limit", 420 * 65536, 16 << 20)


def test_trap_with_full_memory() -> None:
    """A trap of a guest whose memory was full is a memory limit exceeded; the message has the trap, too."""
    found = error(TRAP.format(reason="unreachable"), memory_limit=100, memory_bytes=90)

    assert isinstance(found, LimitExceededError)
    assert found.code == "memory_limit"
    assert "It ended with: unreachable\n  at libc.so!abort" in found.message
    assert found.hint.startswith("Allow more")


@pytest.mark.parametrize(
    ("memory_bytes", "is_doubtful"), [(None, True), (80, True), (30, True), (20, False), (0, False)]
)
def test_trap_of_a_limited_run(memory_bytes: int | None, is_doubtful: bool) -> None:
    """Another trap says that memory may be the reason, unless the guest is known to have been far below its limit."""
    found = error(TRAP.format(reason="unreachable"), memory_limit=100, memory_bytes=memory_bytes)

    assert isinstance(found, GuestTrapError)
    assert found.hint.startswith("Possibly out of memory") == is_doubtful


def test_recursion_is_not_taken_for_lack_of_memory() -> None:
    """A guest whose stack is exhausted is not told about memory, however little it may use."""
    found = error(TRAP.format(reason="call stack exhausted"), memory_limit=1 << 20)

    assert isinstance(found, GuestTrapError)
    assert found.hint == ""
