from __future__ import annotations

from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner


async def test_texts_are_taken_as_they_are(client: openai.AsyncOpenAI, script: Any) -> None:
    """Special tokens that are written out count, and no template is put around."""
    await client.completions.create(model="fake", prompt="a<|im_end|>", max_tokens=1)

    assert script.prompts == ["a<|im_end|>"]


async def test_tokens_can_be_echoed(client: openai.AsyncOpenAI, script: Any) -> None:
    """As the text that they are, streaming or not."""
    script.replies = ["c", "c"]
    whole = await client.completions.create(model="fake", prompt=list(b"ab"), echo=True)
    stream = await client.completions.create(model="fake", prompt=list(b"ab"), echo=True, stream=True)

    assert whole.choices[0].text == "abc"
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "abc"


async def test_choices_of_a_prompt_come_together(client: openai.AsyncOpenAI) -> None:
    """First all those of the first prompt."""
    answer = await client.completions.create(model="fake", prompt=["a", "b"], n=3, echo=True, max_tokens=1)

    assert [choice.text[0] for choice in answer.choices] == [*"aaabbb"]
