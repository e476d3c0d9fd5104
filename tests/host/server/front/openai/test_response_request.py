from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tartlet.server.front.openai.response_request import ResponseRequest, input_text_of


@pytest.mark.parametrize(
    "fields",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"background": True},
        {"reasoning": {"effort": "low"}},
        {"truncation": "auto"},
        {"include": ["file_search_call.results"]},
        {"tools": [{"type": "web_search"}]},
        {"text": {"format": {"type": "grammar"}}},
        {"max_output_tokens": 0},
        {"top_logprobs": 21},
    ],
)
def test_what_is_not_supported_is_refused(fields: Any) -> None:
    """By its name, rather than left out."""
    with pytest.raises(ValidationError) as caught:
        ResponseRequest.model_validate({"model": "m", "input": "Hi", **fields})

    assert {error["loc"][0] for error in caught.value.errors()} == set(fields)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "name": "f", "arguments": ""},
        {"type": 5},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]},
        {"role": "tool", "content": "a"},
        "Hi",
        None,
    ],
)
def test_items_are_checked(item: Any) -> None:
    """What they must have, and what models here cannot read."""
    with pytest.raises(ValidationError):
        ResponseRequest.model_validate({"model": "m", "input": [item]})


def test_what_is_not_wanted_may_be_said() -> None:
    """As some clients do: it is what happens anyway."""
    ResponseRequest.model_validate(
        {"model": "m", "input": "Hi", "background": False, "truncation": "disabled", "store": True}
    )


def test_the_text_of_parts_is_put_together() -> None:
    """Also that of a refusal."""
    body = ResponseRequest.model_validate({"model": "m", "input": [
        {"role": "assistant", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]}
    ]})  # fmt: skip

    assert input_text_of(body.input[0].content) == "ab"  # type: ignore[union-attr]
