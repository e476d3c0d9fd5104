from __future__ import annotations

from typing import Any

import pytest

from tartlet.server.front.errors import ApiError
from tartlet.server.front.openai.generation import check_token, input_json, refuse_unknown, settings_of
from tartlet.server.front.openai.parameters import GenerationParameters
from tartlet.testing import FakeEngine


@pytest.fixture
def model() -> Any:
    engine = FakeEngine()
    yield engine.models["fake"]
    engine.close()


def body(**fields: Any) -> GenerationParameters:
    return GenerationParameters.model_validate({"model": "fake", **fields})


def test_numbers_are_in_the_ranges_of_the_sdk(model: Any) -> None:
    """A seed below 0 becomes one above, no top_p becomes almost none, and tokens end with the context."""
    settings = settings_of(body(seed=-1, top_p=0, temperature=0), model, max_tokens=1 << 30)

    assert settings["sampler"]["seed"] == (1 << 64) - 1
    assert 0 < settings["sampler"]["top_p"] < 1e-5
    assert settings["sampler"]["temperature"] == 0
    assert settings["max_tokens"] == model.context_len


def test_tokens_must_be_of_the_vocabulary(model: Any) -> None:
    """The last id is, the next is not."""
    check_token(model.vocabulary_size - 1, model, "prompt")
    with pytest.raises(ApiError, match="258"):
        settings_of(body(logit_bias={"258": 1.0}), model, max_tokens=1)


def test_a_text_that_cannot_be_sent_is_refused() -> None:
    """Half of a surrogate pair, wherever it is."""
    assert input_json({"a": "é"}) == '{"a": "é"}'
    with pytest.raises(ApiError):
        input_json({"a": ["\ud800"]})


def test_unknown_parameters_are_refused() -> None:
    """Unless somebody knows them."""
    refuse_unknown(body(config=1), known=["config"])
    with pytest.raises(ApiError) as caught:
        refuse_unknown(body(config=1))

    assert caught.value.param == "config"
