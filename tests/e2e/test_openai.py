"""OpenAI's client, the server's application, and the small real model."""

from __future__ import annotations

import json
import math
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx2
import openai
import pytest
from pydantic import BaseModel

from tartlet import compose
from tartlet.server.front.app import create_app
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.in_process import open_in_process
from tartlet.server.front.services import make_services
from tartlet.server.front.storage import open_storage
from tartlet.server.settings import Settings

pytestmark = [pytest.mark.model, pytest.mark.runner]

MODEL = "smollm2-135m-instruct"
QUESTION: Any = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
LONG: Any = [{"role": "user", "content": "Tell a story about a baker who makes tarts. " * 8}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"$ref": "#/$defs/city"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
            "$defs": {"city": {"type": "string", "maxLength": 20}},
        },
    },
}
CLOCK: Any = {
    "type": "function",
    "function": {
        "name": "get_time",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}


class City(BaseModel):
    """What the model is asked for."""

    name: str
    inhabitants: int


class Verdict(BaseModel):
    """What the model thinks."""

    mood: Literal["good", "bad"]
    stars: Literal[1, 2, 3, 4, 5]


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    """An engine of its own: the other one has a listener already."""
    opened = compose.start_engine(MODEL, dtype="float32", threads=1, kv_pages=1024)
    yield opened
    opened.close()


@pytest.fixture
async def client(engine: Any, tmp_path: Path) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of an application on that engine, of which nothing may be left at the end."""
    (tmp_path / "blobs").mkdir()
    async with open_storage(str(tmp_path / "tartlet.db")) as storage, open_in_process(engine=engine) as sandboxes:
        key = await storage.keys.create_first()
        assert key is not None
        services = make_services(Settings(), storage, Blobs(tmp_path / "blobs"), sandboxes)
        transport = httpx2.ASGITransport(create_app(services))
        async with openai.AsyncOpenAI(
            api_key=key.token,
            base_url="http://server/v1",
            max_retries=0,
            http_client=httpx2.AsyncClient(transport=transport),
        ) as opened:
            yield opened
        await services.runs.close()
    engine.check_integrity()
    assert engine.stats().pages_held == 0


async def text_of(client: openai.AsyncOpenAI, **options: Any) -> str:
    answer = await client.chat.completions.create(**{"model": MODEL, "messages": QUESTION, "max_tokens": 24, **options})
    return answer.choices[0].message.content or ""


async def streamed_text_of(client: openai.AsyncOpenAI, **options: Any) -> str:
    options = {"model": MODEL, "messages": QUESTION, "max_tokens": 24, "stream": True, **options}
    stream = await client.chat.completions.create(**options)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def test_the_model_answers(client: openai.AsyncOpenAI) -> None:
    """It is the model's chat template that asks it."""
    assert "Paris" in await text_of(client, temperature=0)


async def test_a_seed_gives_the_same_again(client: openai.AsyncOpenAI) -> None:
    """Streamed and whole; another seed gives something else, and each choice has one of its own."""
    first = await text_of(client, seed=5, temperature=1.5)
    answer = await client.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=24, seed=5, temperature=1.5, n=3
    )
    texts = [choice.message.content for choice in answer.choices]

    assert await text_of(client, seed=5, temperature=1.5) == first
    assert await streamed_text_of(client, seed=5, temperature=1.5) == first
    assert texts[0] == first
    assert len(set(texts)) == 3
    assert await text_of(client, seed=6, temperature=1.5) == texts[1]


async def test_choices_share_the_prompt(client: openai.AsyncOpenAI, engine: Any) -> None:
    """It is computed once for four of them, counted once, and found by the next request."""
    before = engine.stats().prefill_tokens
    answers = [await client.chat.completions.create(model=MODEL, messages=LONG, n=4, max_tokens=2) for _ in range(2)]
    first, second = (answer.usage for answer in answers)
    assert first is not None
    assert second is not None

    assert engine.stats().prefill_tokens - before < 2 * first.prompt_tokens
    assert second.prompt_tokens == first.prompt_tokens
    assert first.prompt_tokens_details.cached_tokens < 32  # type: ignore[union-attr, operator]
    assert second.prompt_tokens_details.cached_tokens > first.prompt_tokens - 32  # type: ignore[union-attr, operator]
    assert second.completion_tokens <= 8


async def test_usage_is_what_the_tokenizer_says(client: openai.AsyncOpenAI, engine: Any) -> None:
    """Of the prompt as the template writes it, and of what was generated."""
    text = engine.text(MODEL)
    answer = await client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=8, temperature=0)
    prompt = [*text.chat_message((), "user", QUESTION[0]["content"]), *text.chat_cue(("user",))]
    completion = await client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=5, temperature=0)

    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(prompt)
    assert answer.usage.completion_tokens in (len(text.encode(answer.choices[0].message.content)) + k for k in (0, 1))
    assert completion.usage is not None
    assert completion.usage.prompt_tokens == len(text.encode("One, two, three,"))
    assert completion.usage.completion_tokens == 5


async def test_a_schema_is_followed(client: openai.AsyncOpenAI) -> None:
    """At any temperature; the client makes an object of it."""
    messages: Any = [{"role": "user", "content": "Describe Paris as JSON with name and inhabitants."}]
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "inhabitants": {"type": "integer", "minimum": 0, "maximum": 10_000_000},
        },
        "required": ["name", "inhabitants"],
        "additionalProperties": False,
    }
    response_format: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}}
    answer = await client.chat.completions.create(
        model=MODEL, messages=messages, response_format=response_format, temperature=2, seed=1, n=3, max_tokens=64
    )
    for choice in answer.choices:
        City.model_validate_json(choice.message.content or "", strict=True)
        assert choice.finish_reason == "stop"
    streamed = await streamed_text_of(
        client, messages=messages, response_format=response_format, temperature=2, seed=1, max_tokens=64
    )
    assert streamed == answer.choices[0].message.content

    response = await client.responses.create(
        model=MODEL,
        input="Describe Paris.",
        text={"format": {"type": "json_schema", "name": "city", "schema": schema}},
        max_output_tokens=64,
    )
    City.model_validate_json(response.output_text)


async def test_the_clients_own_helpers_work(client: openai.AsyncOpenAI) -> None:
    """Which make schemas of classes, and objects of answers."""
    messages: Any = [{"role": "user", "content": "The tarts were great! What is the verdict?"}]
    chat = await client.chat.completions.parse(model=MODEL, messages=messages, response_format=Verdict, max_tokens=60)
    response = await client.responses.parse(
        model=MODEL, input="The tarts were great!", text_format=Verdict, max_output_tokens=60
    )
    tools = [openai.pydantic_function_tool(Verdict)]
    async with client.chat.completions.stream(
        model=MODEL, messages=messages, tools=tools, tool_choice="required", max_tokens=60
    ) as stream:
        completion = await stream.get_final_completion()

    assert isinstance(chat.choices[0].message.parsed, Verdict)
    assert isinstance(response.output_parsed, Verdict)
    assert isinstance(completion.choices[0].message.tool_calls[0].function.parsed_arguments, Verdict)  # type: ignore[index]


async def test_any_json_object_is_one(client: openai.AsyncOpenAI) -> None:
    """Without a schema."""
    answer = await client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Write an empty JSON object: {}"}],
        response_format={"type": "json_object"},
        temperature=0,
        max_tokens=200,
    )
    text = answer.choices[0].message.content or ""

    assert text.startswith("{")
    if answer.choices[0].finish_reason == "stop":
        json.loads(text)


async def test_logprobs_are_consistent(client: openai.AsyncOpenAI) -> None:
    """They are of the text's tokens; the most likely comes first, which is what a temperature of 0 takes."""
    options: Any = {"model": MODEL, "messages": QUESTION, "max_tokens": 12, "logprobs": True, "top_logprobs": 5}
    answer = await client.chat.completions.create(**options, temperature=0)
    tokens = answer.choices[0].logprobs.content or []  # type: ignore[union-attr]

    assert "".join(token.token for token in tokens) == answer.choices[0].message.content
    for token in tokens:
        assert token.logprob == token.top_logprobs[0].logprob == max(each.logprob for each in token.top_logprobs)
        assert sum(math.exp(each.logprob) for each in token.top_logprobs) <= 1.001
    stream = await client.chat.completions.create(**options, temperature=0, stream=True)
    streamed = [
        token
        async for chunk in stream
        if chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content or ()
    ]
    assert streamed == tokens
    completion = await client.completions.create(
        model=MODEL, prompt="One, two, three,", max_tokens=4, logprobs=2, temperature=0
    )
    logprobs = completion.choices[0].logprobs
    assert logprobs is not None
    assert "".join(logprobs.tokens or ()) == completion.choices[0].text
    assert [len(top) for top in logprobs.top_logprobs or ()] == [2] * 4


async def test_stop_strings_end_the_text(client: openai.AsyncOpenAI) -> None:
    """Before them, and they are in no chunk."""
    whole = await text_of(client, temperature=0)
    stop = whole[5:9]
    options: Any = {"temperature": 0, "stop": [stop]}

    assert await text_of(client, **options) == whole[: whole.index(stop)]
    assert await streamed_text_of(client, **options) == whole[: whole.index(stop)]


async def test_biases_count(client: openai.AsyncOpenAI, engine: Any) -> None:
    """One of 100 is always taken, one of -100 never is."""
    (token,) = engine.text(MODEL).encode(" tart")
    (paris,) = engine.text(MODEL).encode(" Paris")

    assert await text_of(client, logit_bias={str(token): 100}, max_tokens=3) == " tart tart tart"
    assert " Paris" not in await text_of(client, logit_bias={str(paris): -100}, temperature=0)


async def test_a_tool_that_is_required_is_called(client: openai.AsyncOpenAI) -> None:
    """With arguments of its schema; the result can be sent back."""
    messages: Any = [{"role": "user", "content": "How warm is it in Lyon?"}]
    options: Any = {"model": MODEL, "tools": [WEATHER, CLOCK], "max_tokens": 64, "seed": 3}
    answer = await client.chat.completions.create(**options, messages=messages, tool_choice="required")
    (call,) = answer.choices[0].message.tool_calls or ()
    named = await client.chat.completions.create(
        **options, messages=messages, tool_choice={"type": "function", "function": {"name": "get_weather"}}
    )
    (named_call,) = named.choices[0].message.tool_calls or ()

    assert call.function.name in ("get_weather", "get_time")  # type: ignore[union-attr]
    arguments = json.loads(named_call.function.arguments)  # type: ignore[union-attr]
    assert set(arguments) == {"city", "unit"}
    assert arguments["unit"] in ("celsius", "fahrenheit")
    messages += [
        named.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": named_call.id, "content": "21 degrees"},
    ]
    assert (await client.chat.completions.create(**options, messages=messages)).choices[0].message.content is not None


async def test_a_prediction_changes_nothing(client: openai.AsyncOpenAI) -> None:
    """But how many steps it takes."""
    whole = await text_of(client, temperature=0)
    answer = await client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        max_tokens=24,
        temperature=0,
        prediction={"type": "content", "content": whole},
    )

    assert answer.choices[0].message.content == whole
    assert answer.usage is not None
    assert answer.usage.completion_tokens_details is not None
    assert (answer.usage.completion_tokens_details.accepted_prediction_tokens or 0) > 0


async def test_penalties_count(client: openai.AsyncOpenAI) -> None:
    """A text that repeats itself does so less."""
    options: Any = {
        "messages": [{"role": "user", "content": "Write ha ha ha ha ha ha"}],
        "temperature": 0,
        "max_tokens": 40,
    }
    plain, penalised = [await text_of(client, **options, frequency_penalty=amount) for amount in (0, 2)]

    assert plain != penalised


def mutated(value: Any, random_: random.Random) -> Any:
    """A body of which one thing is of another kind, or out of its range."""
    junk = [
        None,
        -1,
        0,
        1e308,
        10**30,
        "",
        "x" * 5000,
        [],
        {},
        True,
        [[[]]],
        {"a": {"b": []}},
        "\ud800",
        "\0",
        -0.5,
        [5],
    ]
    changed = json.loads(json.dumps(value))
    place = random_.choice([*changed, "messages.role", "messages.content", "new"])
    if place.startswith("messages."):
        changed["messages"][0][place.partition(".")[2]] = random_.choice(junk)
    else:
        changed[place] = random_.choice(junk)
    return changed


async def test_bad_requests_are_refused_or_answered(client: openai.AsyncOpenAI) -> None:
    """A hundred bodies with something odd in them: an answer, or an error of the client's in OpenAI's shape."""
    random_ = random.Random(7)
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 2,
        "n": 1,
        "stop": ["x"],
        "seed": 1,
        "temperature": 1.0,
        "top_p": 0.9,
        "logit_bias": {"5": 1},
        "logprobs": True,
        "top_logprobs": 1,
        "tools": [WEATHER],
        "tool_choice": "auto",
        "presence_penalty": 0.5,
        "frequency_penalty": 0.5,
        "response_format": {"type": "text"},
        "stream": False,
    }
    statuses = []
    for _ in range(100):
        content = json.dumps(mutated(body, random_))
        response = await client._client.post(
            "http://server/v1/chat/completions",
            content=content,
            headers={"Authorization": f"Bearer {client.api_key}", "Content-Type": "application/json"},
        )
        statuses.append(response.status_code)
        if response.status_code != 200:
            assert set(response.json()) == {"error"}
            assert {"message", "type", "param", "code"} <= set(response.json()["error"])
    assert {*statuses} <= {200, 400, 404}
    assert statuses.count(400) > 50
    assert "Paris" in await text_of(client, temperature=0)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "#/nowhere"},
        {"type": "string", "pattern": "("},
        {"allOf": 5},
        {"not": {"type": "string"}},
    ],
)
async def test_schemas_with_errors_are_refused(client: openai.AsyncOpenAI, schema: Any) -> None:
    """With the error of whoever reads them, and the parameter that has the schema."""
    response_format: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model=MODEL, messages=QUESTION, response_format=response_format, max_tokens=4, stream=stream
            )  # type: ignore[call-overload]
        assert caught.value.message
        assert caught.value.param == "response_format"
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(
            model=MODEL,
            input="Hello",
            text={"format": {"type": "json_schema", "name": "a", "schema": schema}},
            max_output_tokens=4,
        )
    assert caught.value.param == "text.format"
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model=MODEL, messages=QUESTION, tools=tools, tool_choice="required")
    assert caught.value.param == "tools"
