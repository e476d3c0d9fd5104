from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tartlet.server.front.openai.completion_request import CompletionRequest


@pytest.mark.parametrize(
    "prompt",
    [None, "", [], [""], ["a", 1], [1, "a"], [[]], [[1], "a"], [-1], [1 << 32], [True], {"a": 1}, ["a"] * 129, [[[1]]]],
)
def test_prompts_are_texts_or_tokens(prompt: Any) -> None:
    """None of them empty, and not mixed."""
    with pytest.raises(ValidationError):
        CompletionRequest.model_validate({"model": "m", "prompt": prompt})


def test_a_suffix_is_refused() -> None:
    """The models here do not fill in the middle."""
    with pytest.raises(ValidationError, match="not supported"):
        CompletionRequest.model_validate({"model": "m", "prompt": "a", "suffix": "b"})
