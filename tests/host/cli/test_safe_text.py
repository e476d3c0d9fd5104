from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tartlet.cli.safe_text import safe_text


@given(st.text(st.characters(codec=None)))
def test_no_control_character_is_left_but_newline_and_tab(text: str) -> None:
    """Whatever a program prints, the terminal hears no command in it, and can be told it: it is UTF-8."""
    controls = {character for character in safe_text(text).encode().decode() if unicodedata.category(character) == "Cc"}

    assert controls <= {"\n", "\t"}


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\t")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """Nothing else is touched."""
    assert safe_text(text) == text


@given(st.text(), st.text())
def test_a_stream_may_be_cut_anywhere(first: str, second: str) -> None:
    """A sequence that spans two pieces is as harmless as one that does not."""
    assert safe_text(first) + safe_text(second) == safe_text(first + second)


def test_an_escape_sequence_becomes_visible() -> None:
    """The author sees what the program tried."""
    assert safe_text("\x1b[31mred\x1b]0;title\x07\x9b2J\r") == "␛[31mred␛]0;title␇\ufffd2J"
