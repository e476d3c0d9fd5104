"""Guesses: where they come from, how long they are, and when there are none."""

from __future__ import annotations

from tartlet_engine.api import Speculation
from tartlet_engine.drafter import MOST_REST, TRUSTED, Drafter

PROMPT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]


def follow(drafter: Drafter, tokens: list[int], text: list[int], most: int = 100) -> tuple[int, int]:
    """Generate a text, step by step as an engine does. Returns the steps, and the tokens that were guessed in vain."""
    num_steps = num_wasted = 0
    rest = list(text)
    while rest:
        draft = drafter.draft(min(most, len(rest) - 1))
        num_right = 0
        while num_right < len(draft) and draft[num_right] == rest[num_right]:
            num_right += 1
        if draft:
            drafter.note_accepted(len(draft), num_right)
        tokens += rest[: num_right + 1]
        rest = rest[num_right + 1 :]
        num_steps += 1
        num_wasted += len(draft) - num_right
    return num_steps, num_wasted


def test_what_has_stood_before_is_guessed() -> None:
    """After the last n tokens comes what came after them before; the draft grows while all of it is right."""
    tokens = [*PROMPT * 4, 1, 2, 3]
    drafter = Drafter(Speculation(max_draft=16), tokens)

    assert drafter.draft(100) == [4, 5]
    drafter.note_accepted(2, 2)
    tokens += [4, 5, 6]
    assert drafter.draft(100) == [7, 8, 9, 10, 11, 12, 1, 2]
    drafter.note_accepted(2, 2)
    tokens += [7, 8]
    assert drafter.draft(3) == [9, 10, 11]


def test_nothing_is_guessed_from_nothing() -> None:
    """Fewer tokens than an n-gram, tokens that are new, and no room: no draft."""
    assert Drafter(Speculation(), [1]).draft(10) == []
    assert Drafter(Speculation(), PROMPT).draft(10) == []
    assert Drafter(Speculation(ngram=1), [1, 2, 1]).draft(0) == []
    assert Drafter(Speculation(ngram=1), [1, 2, 1]).draft(1) == [2]


def test_a_loop_is_guessed_beyond_its_end() -> None:
    """A text that repeats itself every few tokens goes on so, for more tokens than are known."""
    tokens = [7, 8, 9, 7, 8]
    drafter = Drafter(Speculation(ngram=2), tokens)
    assert drafter.draft(100) == [9, 7]
    tokens.append(9)

    assert drafter.draft(100) == [7, 8, 9, 7]


def test_an_expected_text_is_guessed_from_its_beginning() -> None:
    """Without any match, then on from wherever the text is met again; the context comes after it."""
    expected = tuple(range(100, 160))
    tokens = list(PROMPT)
    drafter = Drafter(Speculation(max_draft=8, expected_token_ids=expected), tokens)
    assert drafter.draft(100) == [100, 101]

    edited = [*range(100, 120), 9, 9, 9, *range(123, 160), 1, 2]
    num_steps, num_wasted = follow(drafter, tokens, edited)
    assert num_steps < len(edited) / 2.5
    assert num_wasted < 12


def test_an_expected_text_that_repeats_itself_is_followed_in_order() -> None:
    """Where its n-grams stand at several places, it goes on at the one after what has just been read."""
    expected = [5, 6, 7, 1, 5, 6, 7, 2, 5, 6, 7, 3]
    tokens = list(PROMPT)
    drafter = Drafter(Speculation(max_draft=32, expected_token_ids=tuple(expected)), tokens)

    assert follow(drafter, tokens, [*expected, 0]) == (3, 0)


def test_wrong_guesses_cost_less_and_less() -> None:
    """In a text whose repetitions lead nowhere, drafts become rare and short."""
    text = [token for number in range(2000) for token in (1, 2, 3, 100 + number)]
    tokens = [1, 2, 3, 99, 1, 2, 3]
    num_steps, num_wasted = follow(Drafter(Speculation(), tokens), tokens, text)

    assert num_steps > 0.99 * len(text)
    assert num_wasted < 0.05 * len(text)


def test_a_rest_ends_when_guesses_would_be_right() -> None:
    """However many were wrong: some tokens of a copy later, there are drafts again."""
    tokens = [1, 2, 3, 99, 1, 2, 3]
    drafter = Drafter(Speculation(max_draft=32), tokens)
    follow(drafter, tokens, [token for number in range(200) for token in (1, 2, 3, 100 + number)])
    copied = list(range(1000, 1200))
    tokens += copied
    num_steps, _ = follow(drafter, tokens, copied)

    assert num_steps < 3 + TRUSTED + 5 + len(copied) / 16
    assert num_steps < MOST_REST


def test_a_draft_that_is_half_right_is_as_long_as_it_was_right() -> None:
    """And one more."""
    tokens = [*range(50), *range(20)]
    drafter = Drafter(Speculation(max_draft=32), tokens)
    assert drafter.draft(100) == [20, 21]
    drafter.note_accepted(2, 1)
    tokens += [20, 7, 10, 11, 12, 13]
    assert drafter.draft(100) == [14, 15]
    tokens.append(14)

    assert drafter.draft(1) == [15]
    drafter.note_accepted(1, 1)
    tokens.append(15)
    assert drafter.draft(100) == [16, 17]
