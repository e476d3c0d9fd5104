from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import UnavailableError
from tartlet.server.front.services import Services

pytestmark = pytest.mark.runner

SOURCE = "from tartlet_sdk import inferlet\n@inferlet\ndef main(): return 1\n"


async def test_what_has_a_name_is_a_model(services: Services, upload: Any) -> None:
    """Of its tenant alone; what has none is found by its digest."""
    await upload(SOURCE, "one@1.0")
    unnamed = await upload(SOURCE + "# two\n")
    published = services.published
    found = await published.find("acme", "one")

    assert [each.name for each in await published.all_of("acme")] == ["one@1.0"]
    assert found is not None
    assert found.facts.is_inferlet
    assert await published.find("acme", unnamed) is not None
    assert await published.all_of("globex") == []
    assert await published.find("globex", "one") is None


async def test_a_database_that_fails_is_no_missing_model(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks hears that it may help to ask again."""

    async def fail(*_: object) -> None:
        raise UnavailableError("the server's database cannot be used now")

    assert await services.published.find("acme", "no/such name") is None
    monkeypatch.setattr(type(services.catalogue), "get", fail)
    with pytest.raises(UnavailableError):
        await services.published.find("acme", "one")
