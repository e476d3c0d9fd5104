from typing import Any

import pytest

pytestmark = pytest.mark.runner


def test_big_texts_give_the_same_tokens(guest: Any) -> None:
    """What is tokenized on a worker thread is appended like everything else."""
    assert guest("""
        model = Model.default()
        text = "ab" * 20000
        tokens = model.tokenize(text)
        return tokens == list(text.encode()) and model.detokenize(tokens) == text
    """)


def test_a_text_beyond_all_proportion_is_refused(guest: Any) -> None:
    """A text that no context could hold is not even tokenized."""
    code, message = guest("""
        context = contexts.Context.create(models.Model.open(None), None)
        return refused(context.fill, "x" * (8 * 1024 * 1024 + 1))
    """)

    assert code == "INVALID_ARGUMENT"
    assert "at most 8,388,608" in message
