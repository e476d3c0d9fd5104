from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

F = '{"name": "f", "arguments": {"a": 1}}'
CALL = f"<tool_call>\n{F}\n</tool_call>"
PIECES = [CALL, f"{CALL}\n", "<tool_call>", "</tool_call>", F, '{"name": "g"}', "Sure. ", "\n", "<", "}"]


@pytest.fixture
def tool_format(load_program: Callable[[str], Any]) -> Any:
    return load_program("tool_format")


def parsed(tool_format: Any, chunks: list[str]) -> tuple[str, list[Any]]:
    parser = tool_format.CallParser(["f"])
    parts = [part for chunk in chunks for part in parser.add(chunk)] + parser.end()
    return "".join(p for p in parts if isinstance(p, str)), [p for p in parts if not isinstance(p, str)]


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("Hello. ", "Hello. ", []),
        (CALL, "", [("f", '{"a": 1}')]),
        (f"Sure.\n{CALL}\n{CALL}\n", "Sure.", [("f", '{"a": 1}')] * 2),
        (CALL.removesuffix("</tool_call>"), "", [("f", '{"a": 1}')]),
        ("<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>", []),
        ('<tool_call>{"name": "other"}</tool_call>', '<tool_call>{"name": "other"}</tool_call>', []),
        ('<tool_call>{"name": "f"}</tool_call> done', " done", [("f", "{}")]),
        ("a <tool", "a <tool", []),
        ("<tool_call>[[", "<tool_call>[[", []),
    ],
)
def test_calls_are_told_from_text(tool_format: Any, text: str, content: str, calls: Any) -> None:
    """What is none stays text."""
    assert parsed(tool_format, [text]) == (content, calls)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=8), data=st.data())
def test_it_does_not_matter_how_the_text_is_cut(tool_format: Any, pieces: list[str], data: st.DataObject) -> None:
    """Streamed or whole, the same comes out; and nothing of a call leaks as text."""
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    assert parsed(tool_format, chunks) == parsed(tool_format, pieces) == parsed(tool_format, [text])
    assert parsed(tool_format, [*text]) == parsed(tool_format, [text])


def test_what_is_written_can_be_read(tool_format: Any) -> None:
    """Calls of earlier turns look like those that are to come."""
    text = tool_format.call_text("f", '{"a": 1}')

    assert parsed(tool_format, [text]) == ("", [("f", '{"a": 1}')])
    assert parsed(tool_format, [tool_format.call_text("f", "")]) == ("", [("f", "{}")])


def test_tools_are_described(tool_format: Any) -> None:
    """Each on a line, as JSON."""
    lines = tool_format.tools_text([{"name": "f"}, {"name": "g"}]).splitlines()
    begin = lines.index("<tools>")

    assert [json.loads(line)["function"]["name"] for line in lines[begin + 1 : begin + 3]] == ["f", "g"]
    assert lines[begin + 3] == "</tools>"
