"""Where a generation ends, and what of its text is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet_engine.api import FinishReason, Stop
from tartlet_engine.stop import StopDecider, StopMatcher, StopStep
from tartlet_engine.tokenizer import ModelTokenizer

SHORT = st.text("ab", max_size=5)


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> ModelTokenizer:
    return ModelTokenizer(tiny_folder)


def first_stop(text: str, strings: Sequence[str]) -> tuple[int, str] | None:
    """Where the stop string begins that is complete first, the longest of them, by looking at every prefix."""
    for end in range(1, len(text) + 1):
        for string in sorted(strings, key=len, reverse=True):
            if string and text[:end].endswith(string):
                return end - len(string), string
    return None


def stream(pieces: Sequence[str], strings: Sequence[str]) -> tuple[list[str], str | None]:
    """What each piece shows, with the end, and the stop string."""
    matcher, shown = StopMatcher(strings), []
    for piece in pieces:
        text, string = matcher.feed(piece)
        shown.append(text)
        if string is not None:
            return shown, string
    return [*shown, matcher.flush()], None


@given(st.lists(SHORT), st.lists(SHORT, max_size=3))
def test_cuts_do_not_matter(pieces: list[str], strings: list[str]) -> None:
    """However a text is cut, what is shown is the text up to the first complete stop string, or all of it."""
    text = "".join(pieces)
    shown, string = stream(pieces, strings)
    expected = first_stop(text, strings)

    assert ("".join(shown), string) == ((text, None) if expected is None else (text[: expected[0]], expected[1]))


@given(st.lists(SHORT), st.lists(SHORT.filter(bool), min_size=1, max_size=3))
def test_nothing_is_held_back_without_need(pieces: list[str], strings: list[str]) -> None:
    """After each piece, what is held back is exactly the longest end of the text that begins a stop string."""
    matcher, text, shown = StopMatcher(strings), "", ""
    for piece in pieces:
        delta, string = matcher.feed(piece)
        if string is not None:
            return
        text, shown = text + piece, shown + delta
        beginnings = [string[:length] for string in strings for length in range(len(string))]
        longest = max(len(beginning) for beginning in beginnings if text.endswith(beginning))
        assert shown == text[: len(text) - longest]


def test_a_false_start_is_shown() -> None:
    """What was held back comes as soon as it cannot become a stop string."""
    assert stream(["x\nUs", "ual", "\nUser:", "no"], ["\nUser:"]) == (["x", "\nUsual", ""], "\nUser:")


def feed(decider: StopDecider, token_ids: Sequence[int]) -> list[StopStep]:
    """Feed tokens until the generation ends."""
    steps = []
    for token_id in token_ids:
        steps.append(decider.feed(token_id))
        if steps[-1].finish_reason is not None:
            break
    return steps


def test_eos_ends_and_is_not_shown(tokenizer: ModelTokenizer) -> None:
    """The text ends before eos; what was held back for a stop string is shown."""
    decider = StopDecider(Stop(strings=("cake",)), (2,), 100, tokenizer.table)
    steps = feed(decider, [*tokenizer.encode("a ca"), 2, 5])

    assert "".join(step.text for step in steps) == "a ca"
    assert steps[-1].finish_reason is FinishReason.EOS
    assert steps[-1].text == "ca"


def test_eos_can_be_ignored(tokenizer: ModelTokenizer) -> None:
    """Then it is a token like others, without a text."""
    decider = StopDecider(Stop(ignore_eos=True), (2, 5), 4, tokenizer.table)
    steps = feed(decider, [2, 5, *tokenizer.encode("a"), 2])

    assert [step.text for step in steps] == ["", "", "a", ""]
    assert steps[-1].finish_reason is FinishReason.LENGTH


def test_stop_token_is_shown(tokenizer: ModelTokenizer) -> None:
    """A stop token that is no special token is part of the text."""
    newline = tokenizer.encode("\n")[0]
    steps = feed(StopDecider(Stop(token_ids=(newline,)), (2,), 9, tokenizer.table), tokenizer.encode("ab\ncd"))

    assert "".join(step.text for step in steps) == "ab\n"
    assert steps[-1] == StopStep("\n", FinishReason.STOP_TOKEN)


def test_length_ends_at_the_token(tokenizer: ModelTokenizer) -> None:
    """The last token allowed ends it; half a character is shown as U+FFFD."""
    ids = [token_id for byte in "🍰".encode() for token_id in (tokenizer_id(tokenizer, byte),)]
    steps = feed(StopDecider(Stop(), (2,), 3, tokenizer.table), ids)

    assert [step.text for step in steps] == ["", "", "\ufffd"]
    assert steps[-1].finish_reason is FinishReason.LENGTH


def test_a_stop_string_split_over_tokens(tokenizer: ModelTokenizer) -> None:
    """It is found and left out; nothing of it was shown before, and the emoji before it is whole."""
    steps = feed(
        StopDecider(Stop(strings=("\n\nUser:",)), (2,), 99, tokenizer.table), tokenizer.encode("🍰\n\nUser: hi")
    )

    assert "".join(step.text for step in steps) == "🍰"
    assert steps[-1].stop_string == "\n\nUser:"
    assert steps[-1].finish_reason is FinishReason.STOP_STRING


def test_which_condition_counts(tokenizer: ModelTokenizer) -> None:
    """If one token meets several: eos, stop string, stop token, length."""
    a = tokenizer.encode("a")[0]

    def reason(token_id: int, stop: Stop) -> FinishReason | None:
        return StopDecider(stop, (2,), 1, tokenizer.table).feed(token_id).finish_reason

    assert reason(2, Stop(token_ids=(2,))) is FinishReason.EOS
    assert reason(a, Stop(token_ids=(a,), strings=("a",))) is FinishReason.STOP_STRING
    assert reason(a, Stop(token_ids=(a,))) is FinishReason.STOP_TOKEN
    assert reason(a, Stop()) is FinishReason.LENGTH


def test_cancelled_generations_keep_their_text(tokenizer: ModelTokenizer) -> None:
    """Flushing gives what was held back."""
    decider = StopDecider(Stop(strings=("abc",)), (2,), 99, tokenizer.table)

    assert [step.text for step in feed(decider, tokenizer.encode("ab"))][-1] == ""
    assert decider.flush() == "ab"


def tokenizer_id(tokenizer: ModelTokenizer, byte: int) -> int:
    """The token of a single byte."""
    return next(i for i in range(512) if tokenizer.table[i] == bytes([byte]))
