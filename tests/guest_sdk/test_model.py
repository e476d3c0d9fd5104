"""Models."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Model


def test_a_model_knows_its_facts(stub: Any) -> None:
    """Facts are read once, and have short names where they are used most."""
    model = Model.default()

    assert model.info is model.info
    assert (model.name, model.context_length, model.eos_tokens) == ("stub", 1024, (0,))
    assert model.info.features == {"chat"}
    assert model.adapters == ("polite",)
    assert [info.name for info in Model.available()] == ["stub"]
    assert repr(Model.open("stub")) == "Model('stub')"


def test_text_and_tokens(stub: Any) -> None:
    """Text to tokens and back, and the bytes of one token."""
    model = Model.default()

    assert model.detokenize(model.tokenize("é")) == "é"
    assert model.token_bytes(195) == b"\xc3"
    assert model.vocabulary == [bytes([token]) for token in range(256)]


def test_arguments_are_checked_before_they_cross(stub: Any) -> None:
    """A wrong type names the call and the argument."""
    with pytest.raises(InvalidArgument, match=r"Model\.open: name must be a str, not int"):
        Model.open(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"Model\.context: adapter must be a str, not int"):
        Model.default().context(adapter=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"Model\.detokenize: tokens must be token ids"):
        Model.default().detokenize([-1])
