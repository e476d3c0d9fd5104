from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

TOKENS = {1: b"Hel", 2: b"lo", 3: "é".encode()[:1], 4: "é".encode()[1:], 5: b"<|im_end|>"}


class Words:
    """Plays the model's vocabulary."""

    def token_bytes(self, token: int) -> bytes:
        return TOKENS[token]


@pytest.fixture
def line(load_program: Callable[[str], Any]) -> Any:
    return load_program("tokens").TokenLine(Words())


@pytest.fixture
def position(load_program: Callable[[str], Any]) -> Callable[[int], Any]:
    draft = load_program("tartlet_sdk.draft")
    return lambda token: draft.TokenLogprobs(draft.TokenLogprob(token, -0.5), (draft.TokenLogprob(1, -0.25),))


def test_tokens_come_with_their_text(line: Any, position: Any) -> None:
    """One whose text is held back waits for it."""
    assert line.add("", (position(1),)) == []
    assert line.add("Hello", (position(2),)) == [
        (0, "48656c", -0.5, [("48656c", -0.25)]),
        (3, "6c6f", -0.5, [("48656c", -0.25)]),
    ]


def test_parts_of_a_character_come_with_it(line: Any, position: Any) -> None:
    """Both begin where it begins."""
    assert line.add("", (position(3),)) == []
    assert [entry[0] for entry in line.add("é", (position(4),))] == [0, 0]


def test_what_ends_the_text_is_not_in_it(line: Any, position: Any) -> None:
    """Neither the eos token nor those of a stop string."""
    assert len(line.add("Hel", (position(1), position(5)))) == 1
    assert line.add("", (position(2),)) == []
