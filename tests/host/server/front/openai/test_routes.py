from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tartlet.server.front.runs import Terms
from tartlet.server.front.services import Services
from tartlet_engine.api import CreateContext

pytestmark = pytest.mark.runner

HELLO: Any = [{"role": "user", "content": "Hello there"}]


async def test_a_chat_is_answered(client: openai.AsyncOpenAI, script: Any) -> None:
    """With the model's text, its finish reason and its use."""
    script.replies = ["General Kenobi"]
    answer = await client.chat.completions.create(model="fake", messages=HELLO)

    assert answer.choices[0].message.content == "General Kenobi"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "fake"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == len("General Kenobi") + 1
    assert answer.usage.prompt_tokens == len(script.prompts[0].encode()) - len("<|im_start|><|im_end|><|im_start|>") + 3


async def test_a_chat_is_streamed(client: openai.AsyncOpenAI) -> None:
    """The role comes first, then text, the finish reason last, and the usage if that is asked for."""
    stream = await client.chat.completions.create(
        model="fake", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]

    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello there"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]][-2:] == [None, "stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


async def test_a_text_is_completed(client: openai.AsyncOpenAI, script: Any) -> None:
    """Each prompt as often as asked for, with the prompt before it if asked for."""
    script.replies = ["two", "TWO", "five", "FIVE"]
    answer = await client.completions.create(model="fake", prompt=["one, ", "four, "], n=2, echo=True, max_tokens=10)

    assert sorted(choice.text for choice in answer.choices[:2]) == ["one, TWO", "one, two"]
    assert sorted(choice.text for choice in answer.choices[2:]) == ["four, FIVE", "four, five"]
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len("one, ") + len("four, ")


async def test_a_prompt_of_tokens_is_completed(client: openai.AsyncOpenAI, script: Any) -> None:
    """One list of tokens is one prompt; several are several."""
    await client.completions.create(model="fake", prompt=list(b"abc"), max_tokens=3)
    await client.completions.create(model="fake", prompt=[list(b"de"), list(b"f")], max_tokens=3)

    assert sorted(script.prompts) == ["abc", "de", "f"]


async def test_a_completion_is_streamed(client: openai.AsyncOpenAI) -> None:
    """Text, then the finish reason."""
    stream = await client.completions.create(model="fake", prompt="abcdef", stream=True, max_tokens=4)
    chunks = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].text for chunk in chunks) == "abcd"
    assert chunks[-1].choices[0].finish_reason == "length"


async def test_a_response_is_created(client: openai.AsyncOpenAI, script: Any) -> None:
    """Instructions are the system's message; the text is the output."""
    response = await client.responses.create(model="fake", instructions="Be brief.", input="Hello there")

    assert response.output_text == "Hello there"
    assert response.status == "completed"
    assert script.prompts[0].startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello there")


async def test_a_response_is_streamed(client: openai.AsyncOpenAI) -> None:
    """In the order of events that OpenAI documents."""
    events = [event async for event in await client.responses.create(model="fake", input="Hello there", stream=True)]

    kinds = [event.type for event in events if event.type != "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.output_text == "Hello there"  # type: ignore[union-attr]


async def test_an_adapter_is_a_model(client: openai.AsyncOpenAI, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name the engine's model is asked with it, by all endpoints; without, by none."""
    adapters, submit = [], engine.submit

    def note(commands: Any, run_id: int | None = None) -> None:
        adapters.extend(command.adapter for command in commands if isinstance(command, CreateContext))
        submit(commands, run_id)

    monkeypatch.setattr(engine, "submit", note)
    for model in ("terse", "fake"):
        answer = await client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])
        await client.completions.create(model=model, prompt="Hello")
        await client.responses.create(model=model, input="Hello")
        assert answer.model == model

    assert adapters == ["terse"] * 3 + [None] * 3


async def test_no_list_without_the_model(
    client: openai.AsyncOpenAI, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is loaded the list would be wrong: clients that ask again later get it."""
    monkeypatch.setattr(type(services.sandboxes), "models", ())
    with pytest.raises(openai.InternalServerError) as caught:
        await client.models.list()

    assert caught.value.status_code == 503
    assert caught.value.response.headers["retry-after"]


async def test_the_models_are_listed(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """Those of the engine, and what the tenant has published; other tenants' are not."""
    await shelf.publish("acme", "shout@1.0", "from tartlet_sdk import inferlet\n@inferlet\ndef main(prompt: str): ...")
    await shelf.publish("globex", "secret@1.0", "from tartlet_sdk import inferlet\n@inferlet\ndef main(): ...")
    models = [model async for model in client.models.list()]

    assert [model.id for model in models] == ["fake", "terse", "shout@1.0"]
    assert (await client.models.retrieve("shout@1.0")).id == "shout@1.0"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("secret@1.0")


async def test_a_name_may_begin_with_its_tenant(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """Its own; another's is not found."""
    await shelf.publish("acme", "shout@1.0", "from tartlet_sdk import inferlet\n@inferlet\ndef main(prompt): ...")
    await shelf.publish("globex", "secret", "from tartlet_sdk import inferlet\n@inferlet\ndef main(prompt): ...")

    assert (await client.models.retrieve("acme/shout@1.0")).id == "shout@1.0"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("globex/secret")


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": "gpt-7"}, "model"),
        ({"n": 129}, "n"),
        ({"n": 0}, "n"),
        ({"temperature": 2.1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logit_bias": {"258": 1}}, "logit_bias"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"stop": ""}, "stop"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "messages.0"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"functions": []}, "functions"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"extra_body": {"mystery": 1}}, "mystery"),
    ],
)
async def test_what_is_wrong_is_named(client: openai.AsyncOpenAI, change: Any, param: str) -> None:
    """In OpenAI's shape of an error, with the parameter."""
    with pytest.raises(openai.APIStatusError) as caught:
        await client.chat.completions.create(**{"model": "fake", "messages": HELLO, **change})

    assert caught.value.status_code in (400, 404)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


async def test_a_prompt_that_is_too_long_is_refused(client: openai.AsyncOpenAI) -> None:
    """With the code that clients know, streaming or not."""
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.completions.create(model="fake", prompt="x" * 5000, stream=stream)  # type: ignore[call-overload]
        assert caught.value.code == "context_length_exceeded"


async def test_a_key_is_needed(client: openai.AsyncOpenAI) -> None:
    """Without one, the client raises what it raises for OpenAI."""
    with pytest.raises(openai.AuthenticationError):
        await client.models.list(extra_headers={"Authorization": "Bearer "})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": HELLO}),
        ("/v1/completions", {"prompt": "Hello"}),
        ("/v1/responses", {"input": "Hello"}),
    ],
)
async def test_who_vanishes_while_it_waits_for_a_place(
    services: Services, exchange: Any, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
) -> None:
    """It gives up its place in the queue; no run is started for nobody."""
    waits, was_given_up = asyncio.Event(), asyncio.Event()

    async def admit(*_: object) -> Terms:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_given_up.set()
        return Terms()

    monkeypatch.setattr(services.runs._policy, "admit", admit)
    request = exchange("POST", path, json_body={"model": "fake", **body})
    await asyncio.wait_for(waits.wait(), 30)
    request.vanish()
    await asyncio.wait_for(was_given_up.wait(), 30)
    await asyncio.wait_for(request.task, 30)

    assert services.runs.num_live == 0
