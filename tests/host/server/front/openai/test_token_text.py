from __future__ import annotations

from tartlet.server.front.openai.token_text import chat_logprobs, completion_logprobs


def test_tokens_are_told_as_text_and_bytes() -> None:
    """Half a character cannot be text: its bytes tell which it is."""
    (entry,) = chat_logprobs([(0, "f09f", -1.5, [("61", -0.5)])])

    assert entry == {
        "token": "\ufffd",
        "bytes": [0xF0, 0x9F],
        "logprob": -1.5,
        "top_logprobs": [{"token": "a", "bytes": [97], "logprob": -0.5}],
    }


def test_completions_have_lists() -> None:
    """One for each figure, of the same length."""
    told = completion_logprobs([(0, "61", -1.5, []), (1, "f09f", -0.5, [])])

    assert told["tokens"] == ["a", "bytes:\\xf0\\x9f"]
    assert {len(values) for values in told.values()} == {2}
