from typing import Any

import pytest

pytestmark = pytest.mark.runner


def test_facts(guest: Any) -> None:
    """The default model and the list give the engine's facts."""
    info, listed = guest("""
        def facts(model):
            return {name: getattr(model, name) for name in (
                "name", "architecture", "context_length", "vocabulary_size", "page_size", "eos_tokens", "features",
                "adapters")}
        return facts(models.Model.open(None).info()), [facts(model) for model in models.list_models()]
    """)

    assert listed == [info]
    assert info == {
        "name": "fake",
        "architecture": "FakeForCausalLM",
        "context_length": 4096,
        "vocabulary_size": 258,
        "page_size": 16,
        "eos_tokens": [256],
        "features": ["chat", "evict", "constraints"],
        "adapters": [],
    }


def test_an_unknown_model(guest: Any) -> None:
    """It is not found, and the hint lists those that there are."""
    assert guest("""
        try:
            models.Model.open("other")
        except Err as error:
            return [error.value.code.name, error.value.message, error.value.hint]
    """) == ["NOT_FOUND", "there is no model 'other'", "There are: fake."]


def test_the_tokenizer(guest: Any) -> None:
    """Text to tokens and back, and the bytes of one token, which need not be a character."""
    assert guest("""
        model = models.Model.open("fake")
        return (model.tokenize("é<|im_end|>"), model.detokenize([195, 169, 256, 255]), list(model.token_bytes(195)))
    """) == [[195, 169, 256], "é<|im_end|>\ufffd", [195]]


def test_the_vocabulary(guest: Any) -> None:
    """All tokens in one text: bytes as Latin-1, each token ended by U+0100; as many as there are."""
    whole, some = guest("""
        model = models.Model.open("fake")
        return [model.vocabulary(0, 1 << 31), model.vocabulary(254, 3)]
    """)

    tokens = whole.split("\u0100")
    assert [token.encode("latin-1") for token in tokens[:256]] == [bytes([byte]) for byte in range(256)]
    assert (len(tokens), tokens[256], tokens[-1]) == (258 + 1, "<|im_end|>", "")
    assert some == "\xfe\u0100\xff\u0100<|im_end|>\u0100"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("model.detokenize, [1, 999]", "token 999 at position 1"),
        ("model.token_bytes, 999", "token 999 is not below"),
        ("model.vocabulary, 999, 1", "token 999 is not below"),
    ],
)
def test_tokens_out_of_the_vocabulary(guest: Any, call: str, what: str) -> None:
    """They are an invalid argument, with the number, where it stands in a list, and the size."""
    code, message = guest(f"""
        model = models.Model.open(None)
        return refused({call})
    """)

    assert code == "INVALID_ARGUMENT"
    assert what in message
    assert "258" in message
