from __future__ import annotations

from typing import Any

import openai
import pytest

pytestmark = pytest.mark.runner

SEED = """
from tartlet_sdk import inferlet, run

@inferlet
def main(prompt: str) -> str:
    return str(run.info().seed)
"""


async def test_a_run_is_the_tenants(client: openai.AsyncOpenAI, services: Any) -> None:
    """It is started on behalf of who asks, and its id is in the answer's."""
    answer = await client.completions.create(model="fake", prompt="a", max_tokens=1)
    run = services.runs.find("acme", f"run_{answer.id.removeprefix('cmpl-')}")

    assert run.program == "fake"
    assert services.runs.get("globex", run.run_id) is None


async def test_the_seed_is_a_published_inferlets(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """All that its run draws comes from it."""
    await shelf.publish("acme", "seed", SEED)
    answer = await client.completions.create(model="seed", prompt="a", seed=-1)

    assert answer.choices[0].text == str((1 << 64) - 1)


async def test_what_others_have_published_is_not_there(client: openai.AsyncOpenAI, shelf: Any) -> None:
    """As if it did not exist."""
    await shelf.publish("globex", "seed", SEED)
    with pytest.raises(openai.NotFoundError) as caught:
        await client.completions.create(model="seed", prompt="a")

    assert caught.value.code == "model_not_found"
