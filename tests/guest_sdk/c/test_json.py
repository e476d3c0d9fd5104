"""The small part of JSON that programs in C have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

FIELDS = """
  tartlet_string object = tartlet_json_field(input, "object");
  tartlet_string name = tartlet_json_text(input, "name", "");
  tartlet_string field = tartlet_json_field(object, name.data);
  return tartlet_ok("[%.*s, %s, %.17g]", (int)(field.data ? field.length : 4), field.data ? field.data : "null",
                    tartlet_to_json(tartlet_json_text(object, name.data, "none")).data,
                    tartlet_json_number(object, name.data, 0.5));
"""
NAMES = st.text(st.characters(exclude_characters='\\"\0', max_codepoint=0x7E, min_codepoint=0x20), max_size=4)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(exclude_characters="\0"), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def fields(c_host: Any) -> Any:
    """A program that looks up one field of an object, in all ways."""
    return c_host.host.load(c_host.build(FIELDS))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, VALUES, max_size=4), NAMES)
def test_fields_are_found_as_python_finds_them(c_host: Any, fields: Any, some: dict[str, Any], other: str) -> None:
    """Whatever lies around them; what is not there, or is of another type, is replaced."""
    for name in [*some, other]:
        value, text, number = c_host.host.run(fields, {"object": some, "name": name})
        expected = some.get(name)
        assert value == expected
        assert text == (expected if isinstance(expected, str) else "none")
        assert number == (expected if type(expected) is int else 0.5)


@pytest.mark.parametrize("text", ["", "plain", 'a "quote" \\ and\nmore\t\r\x01', "ä €\u2028 🥧 \\u00e4"])
def test_texts_are_written_and_read(c_host: Any, text: str) -> None:
    """Escapes, pairs of them, and characters of several bytes."""
    assert c_host.run('return tartlet_ok_text(tartlet_json_text(input, "text", ""));', {"text": text}) == text


@pytest.mark.parametrize("broken", ["", "{", '{"', '{"a', '{"a"', '{"a":', '{"a": "', '{"a": [1', "[", "1", '"\\'])
def test_what_is_cut_off_is_survived(c_host: Any, broken: str) -> None:
    """Nothing is read beyond the end of a text that is no JSON, though no input is one."""
    body = f"""
      tartlet_string text = tartlet_text({json.dumps(broken)});
      tartlet_json_field(text, "b"), tartlet_json_number(text, "a", 1), tartlet_json_text(text, "a", "");
      return tartlet_ok("true");
    """

    assert c_host.run(body) is True
