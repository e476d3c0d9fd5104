"""OpenAI's client and the server's application, with programs and the model in processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tartlet.server.front.app import create_app
from tartlet.server.front.blobs import Blobs
from tartlet.server.front.processes.opening import open_processes
from tartlet.server.front.services import make_services
from tartlet.server.front.storage import open_storage
from tartlet.server.settings import Settings

pytestmark = [pytest.mark.runner, pytest.mark.slow]

HELLO: Any = [{"role": "user", "content": "Hello"}]
UPPER = """
from tartlet_sdk import inferlet

@inferlet
def main(prompt: str) -> str:
    return prompt.upper()
"""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client of the operator's."""
    (tmp_path / "blobs").mkdir()
    async with (
        open_storage(str(tmp_path / "tartlet.db")) as storage,
        open_processes(workers=2, spares=1, model="tiny", threads=1, kv_pages=256) as pool,
    ):
        key = await storage.keys.create_first()
        assert key is not None
        services = make_services(Settings(), storage, Blobs(tmp_path / "blobs"), pool)
        async with asyncio.timeout(120):
            while not pool.is_ready:
                await asyncio.sleep(0.05)
        async with openai.AsyncOpenAI(
            api_key=key.token,
            base_url="http://server/v1",
            max_retries=0,
            http_client=httpx2.AsyncClient(transport=httpx2.ASGITransport(create_app(services)), timeout=120),
        ) as opened:
            yield opened
        await services.runs.close()


async def streamed(client: openai.AsyncOpenAI, **options: Any) -> list[str]:
    texts: dict[int, str] = {}
    async for chunk in await client.chat.completions.create(model="tiny", messages=HELLO, stream=True, **options):
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    return [texts[index] for index in sorted(texts)]


async def whole(client: openai.AsyncOpenAI, **options: Any) -> list[str]:
    answer = await client.chat.completions.create(model="tiny", messages=HELLO, **options)
    return [choice.message.content or "" for choice in answer.choices]


async def test_many_requests_at_once_are_answered_as_one_would_be(client: openai.AsyncOpenAI) -> None:
    """By whichever worker: the seed says what the text is, streamed or whole. So are those to what is published."""
    options = [{"seed": seed, "n": 2, "max_tokens": 16} for seed in range(6)]
    streams = await asyncio.gather(*(streamed(client, **each) for each in options))
    wholes = await asyncio.gather(*(whole(client, **each) for each in options))

    assert streams == wholes
    assert len({text for texts in wholes for text in texts}) > 6

    uploaded = await client._client.post(
        "http://server/v1/inferlets",
        params={"name": "upper@1.0"},
        content=UPPER,
        headers={"Authorization": f"Bearer {client.api_key}", "Content-Type": "text/x-python"},
    )
    assert uploaded.status_code in (200, 201), uploaded.text
    answer = await client.chat.completions.create(model="upper", messages=HELLO)
    assert answer.choices[0].message.content == "HELLO"
    assert [model.id async for model in client.models.list()] == ["tiny", "upper@1.0"]
