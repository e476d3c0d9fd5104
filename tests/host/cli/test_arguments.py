from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.cli.arguments import parse_adapters, parse_input, parse_limits
from tartlet.errors import ConfigError
from tartlet.limits import Limits

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), JSON_VALUES))
def test_json_values_of_pairs_come_through(arguments: dict[str, Any]) -> None:
    """Any JSON value can be given as key=value."""
    pairs = [f"{key}={json.dumps(value)}" for key, value in arguments.items()]

    assert parse_input(None, pairs) == arguments


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("a=1", {"a": 1}),
        ("a=cats", {"a": "cats"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ('a=["x"]', {"a": ["x"]}),
    ],
)
def test_what_is_no_json_is_text(pair: str, expected: dict[str, Any]) -> None:
    """A word needs no quotation marks."""
    assert parse_input(None, [pair]) == expected


def test_an_empty_stdin_is_said_to_be_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is what a forgotten pipe gives."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))

    with pytest.raises(ConfigError, match="stdin is empty"):
        parse_input("-", [])


def test_pairs_go_over_the_input(tmp_path: Path) -> None:
    """A file holds the defaults, the command line what differs."""
    path = tmp_path / "input.json"
    path.write_text('{"n": 3, "topic": "tea"}')

    assert parse_input(f"@{path}", ["n=5"]) == {"n": 5, "topic": "tea"}


def test_a_dash_reads_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Input can be piped."""
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 2]"))

    assert parse_input("-", []) == [1, 2]


def test_without_anything_the_input_is_an_empty_object() -> None:
    """A program whose arguments all have defaults needs none."""
    assert parse_input(None, []) == {}


@pytest.mark.parametrize(
    ("text", "pairs", "message"),
    [
        ("{", [], "--input is not JSON"),
        ("@/nowhere.json", [], "cannot read /nowhere.json"),
        ("[1]", ["a=1"], r"need --input to be a JSON object, it is \[1\]"),
        (None, ["topic"], "'topic' is no argument of the form key=value"),
        (None, ["=1"], "no argument of the form"),
    ],
)
def test_what_is_wrong_with_the_input_is_said(text: str | None, pairs: list[str], message: str) -> None:
    """The error names what was given."""
    with pytest.raises(ConfigError, match=message):
        parse_input(text, pairs)


def test_limits_go_over_the_defaults() -> None:
    """With or without `max_`; `none` lifts a limit."""
    limits = parse_limits(["tokens=2_000", "max_wall_ms=1000", "kv_pages=7", "cpu_ms=none"])

    assert limits == Limits(max_tokens=2000, max_wall_ms=1000, max_kv_pages=7, max_cpu_ms=None)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("token=5", "Did you mean max_tokens"),
        ("tokens", "sets no limit"),
        ("tokens=many", "max_tokens must be a whole number or `none`, got 'many'"),
        ("tokens=0", "max_tokens must be positive"),
        ("tokens=-3", "max_tokens must be positive"),
    ],
)
def test_a_wrong_limit_is_named(setting: str, message: str) -> None:
    """The error says what is allowed."""
    with pytest.raises(ConfigError, match=message):
        parse_limits([setting])


def test_adapters_are_folders_by_name() -> None:
    """What is behind the first equals sign is the folder."""
    assert parse_adapters([]) == {}
    assert parse_adapters(["polite=a/b", "brief=c=d"]) == {"polite": "a/b", "brief": "c=d"}


@pytest.mark.parametrize("settings", [["polite"], ["=folder"], ["polite="], ["a=b", "a=c"]])
def test_what_is_no_adapter(settings: list[str]) -> None:
    """Without a name, without a folder, or two of one name."""
    with pytest.raises(ConfigError, match="adapter"):
        parse_adapters(settings)
