from __future__ import annotations

from typing import Any

import openai
import pytest

from tartlet.server.front.openai.published import result_text

pytestmark = pytest.mark.runner

HELLO: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello there"}]

PRINTING = """
from tartlet_sdk import Model, inferlet

@inferlet
async def main(messages: list[dict], temperature: float = 0.5, topic: str = "none") -> str:
    for word in messages[-1]["content"].split():
        print(word, end=" ")
    print(temperature, topic)
    context = Model.default().context()
    context.fill("abc")
    await context.generate(max_tokens=2)
    return "not this"
"""
RETURNING = """
from tartlet_sdk import inferlet

@inferlet
def main(prompt: str) -> dict:
    return {"content": prompt.upper()}
"""
CONTROLLER = """
from tartlet_sdk import Branch, Controller, Model

class Shout(Controller):
    def start(self, config, prompt):
        self.config = config

    def step(self, sequence, info):
        if not sequence.generated:
            return Branch.force(Model.default().tokenize(f"HEY {self.config}!"))
        return []
"""


async def test_what_an_inferlet_prints_is_the_answer(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """It gets the messages, and those of the parameters that it has declared, also such that OpenAI has not."""
    await shelf.publish("acme", "words@1", PRINTING)
    answer = await client.chat.completions.create(
        model="acme/words@1", messages=HELLO, temperature=0.25, top_p=0.5, extra_body={"topic": "tarts"}
    )

    assert answer.choices[0].message.content == "Hello there 0.25 tarts\n"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 2)


async def test_what_an_inferlet_prints_is_streamed(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """As it comes, without what it returns."""
    await shelf.publish("acme", "words", PRINTING)
    stream = await client.chat.completions.create(model="words", messages=HELLO, stream=True)
    chunks = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Hello there 0.5 none\n"
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_what_an_inferlet_returns_is_the_answer_if_it_prints_nothing(
    client: openai.AsyncOpenAI, shelf: Any
) -> None:
    """A text, or an object's `content`; of a chat it gets the user's last message if it wants a prompt."""
    await shelf.publish("acme", "upper", RETURNING)
    chat = await client.chat.completions.create(model="upper", messages=HELLO)
    completion = await client.completions.create(model="upper", prompt="abc")
    stream = await client.responses.create(model="upper", input="Hello there", stream=True)
    last = [event async for event in stream][-1]

    assert chat.choices[0].message.content == "HELLO THERE"
    assert completion.choices[0].text == "ABC"
    assert last.type == "response.completed"
    assert last.response.output_text == "HELLO THERE"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"extra_body": {"subject": "x"}}, "subject"),
    ],
)
async def test_what_an_inferlet_has_not_declared_is_refused(
    client: openai.AsyncOpenAI, shelf: Any, change: Any, param: str
) -> None:
    """If a client would rely on it; how tokens are sampled is the inferlet's business."""
    await shelf.publish("acme", "upper", RETURNING)
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(**{"model": "upper", "messages": HELLO, "temperature": 0, **change})

    assert caught.value.param == param


async def test_an_inferlet_that_takes_no_text_is_no_model(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """It is told so."""
    await shelf.publish("acme", "sum", "from tartlet_sdk import inferlet\n@inferlet\ndef main(a: int): return a")
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="sum", messages=HELLO)

    assert caught.value.code == "not_a_model"


async def test_an_inferlet_that_fails_is_an_error(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """Before anything was streamed with a status, later as an event of the stream."""
    source = "from tartlet_sdk import inferlet\n@inferlet\ndef main(prompt: str):\n    {}\n    raise ValueError('boo')"
    await shelf.publish("acme", "bad", source.format("pass"))
    await shelf.publish("acme", "late", source.format("print('first')"))
    for stream in (False, True):
        with pytest.raises(openai.UnprocessableEntityError, match="boo"):
            await client.chat.completions.create(model="bad", messages=HELLO, stream=stream)  # type: ignore[call-overload]

    chunks = await client.chat.completions.create(model="late", messages=HELLO, stream=True)
    texts = [(await anext(chunks)).choices[0].delta.content for _ in range(2)]
    with pytest.raises(openai.APIError, match="boo"):
        await anext(chunks)
    assert texts == ["", "first\n"]


async def test_a_controller_steers_the_answer(client: openai.AsyncOpenAI, shelf: Any, script: Any) -> None:
    """The whole chat is its prompt, and each choice has one of its own."""
    await shelf.publish("acme", "shout", CONTROLLER)
    answer = await client.chat.completions.create(model="shout", messages=HELLO, n=2, extra_body={"config": "you"})
    stream = await client.completions.create(model="shout", prompt="abc", extra_body={"config": 3}, stream=True)

    assert [choice.message.content for choice in answer.choices] == ["HEY you!", "HEY you!"]
    assert script.prompts[0].startswith("<|im_start|>system\nBe kind.")
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "HEY 3!"


async def test_a_controller_that_fails_is_an_error(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """With what it raised, as of an inferlet."""
    failing = (
        "from tartlet_sdk import Controller\nclass Bad(Controller):\n    def step(self, *_): raise ValueError('boo')"
    )
    await shelf.publish("acme", "bad", failing)
    with pytest.raises(openai.UnprocessableEntityError, match="boo"):
        await client.chat.completions.create(model="bad", messages=HELLO)


async def test_a_controller_does_not_go_with_everything(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """What it cannot do is named."""
    await shelf.publish("acme", "shout", CONTROLLER)
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model="shout", messages=HELLO, logprobs=True)

    assert caught.value.param == "logprobs"


@pytest.mark.parametrize(
    ("result", "text"),
    [('"a"', "a"), ('{"content": "a"}', "a"), ('{"text": "a", "n": 1}', "a"), ("null", ""), ('[1, "é"]', '[1, "é"]')],
)
def test_results_are_texts(result: str, text: str) -> None:
    """Of what has no text, the JSON is one."""
    assert result_text(result) == text
