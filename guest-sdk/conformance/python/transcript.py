"""What a case tells: lines of text that do not depend on the language. The README says how values are written."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tartlet_sdk import TartletError
from tartlet_sdk.host_call import from_host
from tartlet_sdk.wit import Err


def show(value: Any) -> str:
    """Write a value: `none`, `true`, `12`, `"text"`, `0x3f800000` for a float, `[1, 2]`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, Iterable):
        return f"[{', '.join(show(each) for each in value)}]"
    return "ok"  # a handle


def show_error(error: TartletError) -> str:
    """Write an error: its code, message and hint."""
    return f"error {error.code}, {show(error.message)}, {show(error.hint)}"


class Transcript:
    """The lines of one case."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, label: str, *values: Any) -> None:
        """Add a line: what it is, and one value or several."""
        self.lines.append(f"{label}: {', '.join(show(value) for value in values)}")

    def attempt(self, label: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function of the SDK or of the bindings; tell `ok`, the value, or the error. The value."""
        try:
            value = function(*arguments, **options)
        except TartletError as error:
            self.lines.append(f"{label}: {show_error(error)}")
            return None
        except Err as error:  # the bindings' own
            self.lines.append(f"{label}: {show_error(from_host(error.value, ''))}")
            return None
        self.lines.append(f"{label}: {'ok' if value is None else show(value)}")
        return value

    async def wait(self, label: str, awaitable: Awaitable[Any]) -> Any:
        """Await something; tell `ok`, the value, or the error. The value."""
        try:
            value = await awaitable
        except TartletError as error:
            self.lines.append(f"{label}: {show_error(error)}")
            return None
        self.lines.append(f"{label}: {'ok' if value is None else show(value)}")
        return value
