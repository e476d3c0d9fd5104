"""From Wasmtime's error texts to errors that say what happened."""

from __future__ import annotations

import re

from tartlet.errors import GuestTrapError, InvalidHandleError, RunError, how_to_allow_more, memory_limit_error

WASM_PAGE_BYTES = 65536
_MAX_FRAMES = 8
_FULL = 7 / 8  # of the limit: the next growth was refused
_DOUBTFUL = 1 / 4  # something that doubles, the old beside the new, is refused from a third on

_FRAME = re.compile(r"^\s*\d+:\s+0x[0-9a-f]+\s+-\s+(.+)$", re.MULTILINE)
_CAUSE = re.compile(r"^\s*(?:\d+:\s+)?(.+)$", re.MULTILINE)
_BAD_HANDLE = re.compile(
    r"unknown handle index|handle index \d+ used with the wrong type|handle is not|host-owned resource"
)
_MEMORY_REFUSED = re.compile(r"memory minimum size of (\d+) pages exceeds memory limits")

_STACK_EXHAUSTED = "call stack exhausted"

_EXPLANATIONS = {
    _STACK_EXHAUSTED: "the program recursed too deeply",
    "out of bounds memory access": "the program used an address outside its memory",
    "wasm `unreachable` instruction executed": "the program aborted itself",
    "resource limit exceeded: memory count too high at 2": "the program has more than one linear memory",
}


def error_from_trap(text: str, *, memory_limit: int | None, memory_bytes: int | None) -> RunError:
    """Read the error with which Wasmtime ended a guest.

    Args:
        text: Wasmtime's message, with its backtrace and its causes.
        memory_limit: the run's limit in bytes; None if it has none.
        memory_bytes: how large the guest's memory was, about; None if that is not known.
    """
    reason = _root_cause(text)
    refused = _MEMORY_REFUSED.search(text)
    if refused and memory_limit is not None:
        needed = int(refused.group(1)) * WASM_PAGE_BYTES
        return memory_limit_error(used=needed, allowed=memory_limit, details="It needs that much to start.")
    if _BAD_HANDLE.search(text):
        return InvalidHandleError(f"the program used a handle that it does not hold: {reason}")
    message = f"{_EXPLANATIONS[reason]}: {reason}" if reason in _EXPLANATIONS else reason
    message = "\n".join([message, *_frames(text)])
    if memory_limit is None or reason == _STACK_EXHAUSTED:
        return GuestTrapError(message)
    if memory_bytes is not None and memory_bytes >= _FULL * memory_limit:
        return memory_limit_error(used=memory_limit, allowed=memory_limit, details=f"It ended with: {message}")
    if memory_bytes is None or memory_bytes >= _DOUBTFUL * memory_limit:
        hint = (
            f"Possibly out of memory: the run may use {memory_limit:,} bytes. {how_to_allow_more('max_memory_bytes')}"
        )
        return GuestTrapError(message, hint=hint)
    return GuestTrapError(message)


def _root_cause(text: str) -> str:
    """Take the last of the causes, which is the trap itself."""
    causes = _CAUSE.findall(text.rpartition("Caused by:")[2])
    cause = str(causes[-1]) if causes else text
    return cause.strip().removeprefix("wasm trap: ")


def _frames(text: str) -> list[str]:
    """List the innermost guest functions, cleaned of what only a Wasmtime developer needs."""
    names = [match.group(1).removeprefix("<unknown>!") for match in _FRAME.finditer(text.partition("Caused by:")[0])]
    lines = [f"  at {name}" for name in names[:_MAX_FRAMES]]
    return lines if len(names) <= _MAX_FRAMES else [*lines, f"  ... {len(names) - _MAX_FRAMES} more"]
