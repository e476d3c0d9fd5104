from __future__ import annotations

from contextlib import closing
from typing import Any

import msgspec
import pytest

from tartlet.errors import UnavailableError
from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.model_names import Served, default_model, find_model, fingerprint, model_object, served
from tartlet.server.front.openai.published import NothingPublished, Published
from tartlet.server.requests import ProgramFacts, ProgramRef
from tartlet.testing import FakeEngine


@pytest.fixture
def model() -> Any:
    engine = FakeEngine()
    yield engine.models["fake"]
    engine.close()


async def test_names_stand_for_models(model: Any) -> None:
    """One that stands for nothing is not found; before the engine is there, nobody can tell."""
    assert await find_model([model], NothingPublished(), "acme", "fake") == Served(model)
    with pytest.raises(ApiError) as caught:
        await find_model([model], NothingPublished(), "acme", "other")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")
    with pytest.raises(UnavailableError):
        await find_model([], NothingPublished(), "acme", "other")
    with pytest.raises(UnavailableError):
        default_model([])


def test_the_fingerprint_is_that_of_what_is_served(model: Any) -> None:
    """The same model in another format may give other tokens."""
    assert fingerprint(Served(model)) == fingerprint(Served(model))
    assert fingerprint(Served(msgspec.structs.replace(model, dtype="bfloat16"))) != fingerprint(Served(model))
    assert fingerprint(Served(model, "a")) != fingerprint(Served(model))


async def test_adapters_are_models() -> None:
    """By their names: the engine's model with it."""
    with closing(FakeEngine(adapters=["terse", "loud"])) as engine:
        models = [*engine.models.values()]

    assert [each.name for each in served(models)] == ["fake", "terse", "loud"]
    assert await find_model(models, NothingPublished(), "acme", "loud") == Served(models[0], "loud")
    told = model_object(Served(models[0], "loud"), 7)
    assert (told["id"], told["kind"], told["parent"]) == ("loud", "adapter", "fake")


def test_models_say_what_they_are(model: Any) -> None:
    """A model of the engine, an inferlet, or a controller."""
    program = ProgramRef("ab", "/ab", "source", "acme/a")
    published = [
        Published("a", program, ProgramFacts(is_inferlet=is_inferlet, is_controller=True, description="Does."), 1.5)
        for is_inferlet in (True, False)
    ]

    assert model_object(Served(model), 7) == {
        "id": "fake",
        "object": "model",
        "created": 7,
        "owned_by": "tartlet",
        "kind": "model",
        "context_length": 4096,
    }
    assert [model_object(each, 7)["kind"] for each in published] == ["inferlet", "controller"]
    assert model_object(published[0], 7)["created"] == 1
