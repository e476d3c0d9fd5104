"""Requests that have brought down servers of models: here they are refused or done, and others notice nothing.

By number, the public reports that they stand for are those of `test_known_faults.py`.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.host.server.chaos.raw_client import RawClient
from tests.host.server.chaos.server_process import ServerProcess, settled, upload

pytestmark = [pytest.mark.runner, pytest.mark.slow]

PAGES = 100  # of 16 tokens: less than the tiny model's greatest context
HELLO: Any = [{"role": "user", "content": "Hello"}]
CONSTRAINED = """
from tartlet_sdk import Constraint, Model, inferlet

@inferlet
async def main(kind: str, text: str) -> str:
    context = Model.default().context()
    context.user("Hello")
    return (await context.generate(constraint=getattr(Constraint, kind)(text), max_tokens=4)).text
"""
GOOD = {
    "regex": r"(yes|no)( [a-z]{1,8}){2,4}\.",
    "lark": 'start: "a" inner+ | inner\ninner: /[0-9]{1,3}/ | "(" inner ")"\n',
    "json_schema": json.dumps({"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, "x"]}}}}),
}


@pytest.fixture
async def server(home: Path, short_folder: Path) -> AsyncIterator[ServerProcess]:
    """`tartlet serve` with the tiny model, and a small cache."""
    command = [sys.executable, "-m", "tartlet", "serve", "--model", "tiny", "--port", "0", "--threads", "1"]
    server = ServerProcess(home, short_folder, [*command, "--kv-pages", str(PAGES)], TARTLET_DRAIN_S="0")
    try:
        await server.start()
        yield server
        await server.check_idle()
        await server.stop()
    finally:
        await server.clean_up()


async def chat(client: httpx2.AsyncClient, **options: Any) -> httpx2.Response:
    """Ask the tiny model something, as OpenAI's clients do."""
    return await client.post("/v1/chat/completions", json={"model": "tiny", "messages": HELLO, **options})


async def tell(client: httpx2.AsyncClient, is_over: asyncio.Event) -> set[str]:
    """Ask the same all the time; what was answered."""
    texts = set()
    while not is_over.is_set():
        answer = await chat(client, seed=3, max_tokens=24)
        assert answer.status_code == 200, answer.text
        texts.add(answer.json()["choices"][0]["message"]["content"])
    return texts


def mutated(text: str, number: int) -> str:
    """A text with some of its characters changed, doubled, dropped, or repeated very often."""
    draw = random.Random(number)
    chars = list(text)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(chars))
        change = draw.choice([r"\(", "(", "[", "{", "}", '"', "*", "\n", "\0", "é", "{99999}", "((((" * 50, ""])
        chars[at] = draw.choice([change, chars[at] * 2])
    return "".join(chars)


async def test_what_servers_of_models_have_died_of(server: ServerProcess) -> None:
    """One server goes through it all, while somebody else asks it the same thing over and over."""
    client = server.client()
    engine, workers = server.children("engine"), server.children("worker")
    quiet = (await chat(client, seed=3, max_tokens=24)).json()["choices"][0]["message"]["content"]
    is_over = asyncio.Event()
    telling = asyncio.create_task(tell(client, is_over))
    try:
        await bad_grammars(client)
        await ids_outside_the_vocabulary(client)
        await more_than_the_pool_holds(client)
        await gone_while_a_prompt_is_read(client, server)
        await probes_while_prompts_are_read(client, server)
        await texts_in_pieces(server)
    finally:
        is_over.set()
        told = await telling

    assert told == {quiet}
    assert (server.children("engine"), server.children("worker")) == (engine, workers)


async def bad_grammars(client: httpx2.AsyncClient) -> None:
    """B1, B2: each is refused by name or works, a good one after it works."""
    await upload(client, CONSTRAINED, "constrained")

    async def run(kind: str, text: str) -> Any:
        answer = await client.post("/v1/inferlets/constrained/runs", json={"input": {"kind": kind, "text": text}})
        assert answer.status_code == 200, answer.text
        return answer.json()

    codes = set()
    for kind, text in GOOD.items():
        for number in range(34):
            ended = await run(kind, mutated(text, number))
            if ended["status"] != "succeeded":
                codes.add(ended["error"]["code"])
        assert (await run(kind, text))["status"] == "succeeded"
    assert codes <= {"guest_error", "invalid_argument", "constraint_error"}, codes
    refused = await chat(
        client,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strange"}}},
    )
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "response_format"), refused.text


async def ids_outside_the_vocabulary(client: httpx2.AsyncClient) -> None:
    """B4: each is refused; so are those that only padding has."""
    size = 259
    for token_id in (-1, 1 << 31, 10**9, 2**63):
        answer = await chat(client, logit_bias={str(token_id): 5}, max_tokens=2)
        assert answer.status_code == 400, answer.text
        answer = await client.post("/v1/completions", json={"model": "tiny", "prompt": [1, token_id], "max_tokens": 2})
        assert answer.status_code == 400, answer.text
    statuses = []
    for token_id in range(size, 100_000, 997):
        answer = await client.post("/v1/completions", json={"model": "tiny", "prompt": [token_id], "max_tokens": 1})
        statuses.append(answer.status_code)
    assert set(statuses) <= {200, 400}
    assert 400 in statuses


async def more_than_the_pool_holds(client: httpx2.AsyncClient) -> None:
    """B5: it is refused with the numbers, and does not hold up what comes after it."""
    long = [{"role": "user", "content": "word " * (PAGES * 16 // 3)}]
    big = asyncio.create_task(chat(client, messages=long, max_tokens=10))
    later = await chat(client, max_tokens=2)
    answer = await big

    assert later.status_code == 200
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "kv_exhausted", answer.text
    assert "1,6" in answer.json()["error"]["message"]


async def gone_while_a_prompt_is_read(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """B7, B8, B10: a client goes in the midst of a prompt, or of many answers: all is free soon, and it is counted."""
    before = await cancelled_by_clients(client)
    for n in (1, 6):
        for stream in (False, True):
            gone = RawClient(server.url, server.key)
            await gone.open()
            words = {"messages": [{"role": "user", "content": "many words " * 80}], "max_tokens": 200}
            await gone.say(
                gone.request("POST", "/v1/chat/completions", {"model": "tiny", "n": n, "stream": stream, **words})
            )
            await settled(lambda: two_runs(client))
            await gone.cut()
            await settled(lambda: at_most_one_run(client))

    async def all_are_counted() -> bool:
        return await cancelled_by_clients(client) == before + 4

    await settled(all_are_counted)


async def two_runs(client: httpx2.AsyncClient) -> bool:
    return len((await client.get("/v1/runs?status=running")).json()["data"]) >= 2


async def at_most_one_run(client: httpx2.AsyncClient) -> bool:
    return len((await client.get("/v1/runs?status=running")).json()["data"]) <= 1


async def cancelled_by_clients(client: httpx2.AsyncClient) -> float:
    """What the server has counted."""
    lines = (await client.get("/metrics")).text.splitlines()
    return sum(
        float(line.split()[-1]) for line in lines if line.startswith('tartlet_runs_cancelled_total{reason="client"')
    )


async def probes_while_prompts_are_read(client: httpx2.AsyncClient, server: ServerProcess) -> None:
    """B15: a hundred probes at once, while the engine is busy: it is healthy, and they leave nothing behind."""
    words = [{"role": "user", "content": "many words " * 80}]
    busy = [asyncio.create_task(chat(client, messages=words, max_tokens=32, seed=seed)) for seed in range(4)]
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as prober:
        probes = await asyncio.gather(*(prober.get(f"/health/{name}") for name in ("ready", "live") * 50))
    assert {probe.status_code for probe in probes} == {200}
    assert {(await each).status_code for each in busy} == {200}


async def texts_in_pieces(server: ServerProcess) -> None:
    """B19, B20: streamed, with stop strings or without, a text is what it is as a whole."""
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
        for seed in range(6):
            for stop in (None, ["e", "th"], ["zzz zzz", "qq"]):
                given: Any = {"model": "tiny", "messages": HELLO, "seed": seed, "max_tokens": 32, "stop": stop}
                whole = (await client.chat.completions.create(**given)).choices[0].message.content
                stream = await client.chat.completions.create(**given, stream=True)
                pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
                assert "".join(pieces) == whole
                assert not any(each in (whole or "") for each in stop or ())
