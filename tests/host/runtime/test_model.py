import msgspec
import pytest

from tartlet.runtime.model import ModelHandle
from tartlet.testing import FakeEngine
from tartlet.wasm.host_function import Err


@pytest.fixture
def model() -> ModelHandle:
    engine = FakeEngine()
    engine.close()
    return ModelHandle(engine.models["fake"], engine.text("fake"))


def test_tokens_of_the_vocabulary_pass(model: ModelHandle) -> None:
    """No token at all, and the last id of the vocabulary, are fine."""
    model.check_tokens([])
    model.check_tokens([0, 257])


def test_the_first_bad_token_is_named(model: ModelHandle) -> None:
    """The refusal says which token stands where, and what is allowed."""
    with pytest.raises(Err) as caught:
        model.check_tokens([0, 258, 300], "stop token")

    assert caught.value.value == {
        "code": "invalid-argument",
        "message": "stop token 258 at position 1 is not below 258, the vocabulary size of fake",
        "hint": "",
    }


def test_a_model_without_a_chat_template(model: ModelHandle) -> None:
    """Chat is unsupported, and the hint says what to do instead."""
    plain = ModelHandle(msgspec.structs.replace(model.info, features=()), model.text)

    with pytest.raises(Err) as caught:
        plain.check_chat()

    assert isinstance(caught.value.value, dict)
    assert caught.value.value["code"] == "unsupported"
    assert caught.value.value["hint"]


def test_adapters_that_there_are_not(model: ModelHandle) -> None:
    """The refusal lists those that there are, or says that there is none."""
    some = ModelHandle(msgspec.structs.replace(model.info, adapters=("a", "b")), model.text)
    some.check_adapter("b")
    hints = []
    for handle in (some, model):
        with pytest.raises(Err) as caught:
            handle.check_adapter("c")
        assert caught.value.value["code"] == "not-found"
        hints.append(caught.value.value["hint"])

    assert hints == ["There are: a, b.", "The host was started without adapters."]
