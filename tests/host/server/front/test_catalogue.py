from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from tartlet.errors import NotFoundError
from tartlet.server.front.catalogue import MOST_CHARS, MOST_FACTS
from tartlet.server.front.errors import ApiError
from tartlet.server.front.services import Services
from tartlet.server.requests import SourceFile

pytestmark = pytest.mark.runner

SOURCE = "from tartlet_sdk import inferlet\n@inferlet\ndef main(): return 1\n"


async def file(text: str = SOURCE) -> AsyncIterator[bytes]:
    yield msgspec.json.encode(SourceFile("main", {"main.py": text}))


async def test_uploads_and_deletions_at_once(services: Services) -> None:
    """Whatever comes first: what stands in the database has its file, and there are no others."""
    catalogue = services.catalogue

    async def work(tenant: str) -> None:
        for _ in range(8):
            record, _ = await catalogue.upload(tenant, "source", file())
            assert catalogue.blobs.path(record.tenant, record.digest).exists()
            await catalogue.delete(tenant, record.digest)

    await asyncio.gather(work("acme"), work("globex"))
    record, is_new = await catalogue.upload("acme", "source", file(), "one")

    assert is_new
    assert catalogue.blobs.path(record.tenant, record.digest).exists()
    assert (await catalogue.program("acme", "one")).name == "acme/one"
    with pytest.raises(NotFoundError):
        await catalogue.programs("globex", ["one"])


async def test_a_controller_is_not_run_like_an_inferlet(services: Services) -> None:
    """Nor an inferlet like a controller: what is missing or too much is told before a run starts."""
    text = "from tartlet_sdk import Controller\nclass Plain(Controller):\n    pass\n"
    await services.catalogue.upload("acme", "source", file(text), "steer")
    await services.catalogue.upload("acme", "source", file(), "one")

    assert (await services.catalogue.runnable("acme", "steer", steers=True)).name == "acme/steer"
    assert (await services.catalogue.runnable("acme", "one")).name == "acme/one"
    with pytest.raises(ApiError, match="steer is a controller") as error:
        await services.catalogue.runnable("acme", "steer")
    assert '"control"' in (error.value.hint or "")
    with pytest.raises(ApiError, match="one is no controller"):
        await services.catalogue.runnable("acme", "one", steers=True)


async def test_what_a_program_says_of_itself_is_bounded(services: Services) -> None:
    """It is shown to people and kept for each tenant."""
    parameters = ", ".join(f"p{index}={'9' * 400}" for index in range(250))
    text = f'"""{"d" * 5000}"""\nfrom tartlet_sdk import inferlet\n@inferlet\ndef main({parameters}): return 1\n'
    record, _ = await services.catalogue.upload("acme", "source", file(text))
    facts = record.facts

    assert facts.parameters is not None
    assert len(facts.parameters) == MOST_FACTS
    assert len(facts.parameters[0].default) == len(facts.description) == MOST_CHARS
