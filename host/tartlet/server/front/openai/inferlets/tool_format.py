"""How tools are shown to the model, and how its calls are read: the format of Qwen's and Hermes' models.

Models that have learned another one do what the system message asks them to, if they are able to.
"""

from __future__ import annotations

import json
from typing import Any

BEGIN = "<tool_call>"
END = "</tool_call>"

_INTRODUCTION = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_INSTRUCTION = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


def tools_text(tools: list[dict[str, Any]]) -> str:
    """What the system message says of tools."""
    lines = [json.dumps({"type": "function", "function": tool}, ensure_ascii=False) for tool in tools]
    return _INTRODUCTION + "\n".join(lines) + _INSTRUCTION


def call_text(name: str, arguments: str) -> str:
    """A call that the assistant has made; the arguments are JSON text."""
    return f'{BEGIN}\n{{"name": {json.dumps(name)}, "arguments": {arguments or "{}"}}}\n{END}'


def response_text(text: str) -> str:
    """The result of a call, where it must come as a message of the user."""
    return f"<tool_response>\n{text}\n</tool_response>"


class CallParser:
    """Tells the calls in a text that comes in pieces from the rest.

    Text that may still become a call is held back, and so is white space, which belongs to a call that follows it. What
    looks like a call but is none, because it is no JSON or names no tool, stays text.
    """

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._held = ""
        self._has_call = False

    def add(self, text: str) -> list[str | tuple[str, str]]:
        """Take in more text; the text that is free now, and calls: names with arguments as JSON text."""
        self._held += text
        parts: list[str | tuple[str, str]] = []
        while True:
            before, begin, rest = self._held.partition(BEGIN)
            if not begin:
                num_free = len(self._held) - self._num_pending()
                self._free(parts, self._held[:num_free])
                self._held = self._held[num_free:]
                return parts
            inside, end, after = rest.partition(END)
            if not end:
                if before.strip():
                    self._free(parts, before.rstrip())
                    self._held = self._held[len(before.rstrip()) :]
                return parts
            self._take(parts, before, inside, begin + inside + end)
            self._held = after

    def end(self) -> list[str | tuple[str, str]]:
        """Take in that no more text comes; what was held back."""
        held, self._held = self._held, ""
        parts: list[str | tuple[str, str]] = []
        before, begin, inside = held.partition(BEGIN)
        if begin:  # the model ended its turn instead of the call
            self._take(parts, before, inside, begin + inside)
        else:
            self._free(parts, held)
        return parts

    def _take(self, parts: list[str | tuple[str, str]], before: str, inside: str, whole: str) -> None:
        call = _call_of(inside, self._names)
        if call is None:
            self._free(parts, before + whole)
            return
        self._free(parts, before.rstrip())
        self._has_call = True
        parts.append(call)

    def _free(self, parts: list[str | tuple[str, str]], text: str) -> None:
        if self._has_call and not text.strip():  # between calls, or after the last
            return
        if text:
            parts.append(text)

    def _num_pending(self) -> int:
        """How many characters at the end may belong to a call: white space, and the beginning of a mark."""
        num_mark = next((n for n in range(len(BEGIN) - 1, 0, -1) if self._held.endswith(BEGIN[:n])), 0)
        before = self._held[: len(self._held) - num_mark]
        return len(self._held) - len(before.rstrip())


def _call_of(text: str, names: list[str]) -> tuple[str, str] | None:
    """The call that a text describes, with its arguments as JSON text; None if it is none of these tools."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or call.get("name") not in names:
        return None
    arguments = call.get("arguments", {})
    return call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
