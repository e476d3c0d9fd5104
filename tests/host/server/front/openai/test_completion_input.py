from __future__ import annotations

from typing import Any

import pytest

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.completion_input import completion_conversation, completion_input
from tartlet.server.front.openai.completion_request import CompletionRequest
from tartlet.testing import FakeEngine


@pytest.fixture
def model() -> Any:
    engine = FakeEngine()
    yield engine.models["fake"]
    engine.close()


def body(**fields: Any) -> CompletionRequest:
    return CompletionRequest.model_validate({"model": "fake", "prompt": "Hi", **fields})


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), ([1, 2], [[1, 2]]), ([[1, 2], [3]], [[1, 2], [3]])],
)
def test_a_prompt_has_four_forms(model: Any, prompt: Any, prompts: Any) -> None:
    """One or several, as text or as tokens."""
    assert completion_input(body(prompt=prompt), model)["prompts"] == prompts


def test_there_are_sixteen_tokens_by_default(model: Any) -> None:
    """As with OpenAI."""
    assert completion_input(body(), model)["settings"]["max_tokens"] == 16


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": ["a"] * 3, "n": 64},
        {"prompt": [257, 258]},
        {"best_of": 2},
        {"echo": True, "logprobs": 1},
        {"stream_options": {}},
    ],
)
def test_what_does_not_go_together_is_refused(model: Any, fields: Any) -> None:
    """With a status of 400."""
    with pytest.raises(ApiError) as caught:
        completion_input(body(**fields), model)

    assert caught.value.status == 400


def test_an_inferlet_takes_one_text() -> None:
    """As a prompt, or as a user's message."""
    assert completion_conversation(body()).messages == [{"role": "user", "content": "Hi"}]
    for prompt in ([1, 2], ["a", "b"]):
        with pytest.raises(ApiError):
            completion_conversation(body(prompt=prompt))
