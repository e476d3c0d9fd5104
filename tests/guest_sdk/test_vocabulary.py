"""The bytes of all tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet_sdk import Model
from tartlet_sdk.vocabulary import vocabulary_of


def test_it_is_asked_for_once(stub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one call; whoever changes the list that a model gives changes their own."""
    model = Model.default()
    first = model.vocabulary
    first.clear()
    monkeypatch.setattr(type(model._handle), "vocabulary", None)

    assert vocabulary_of(model._handle) == [bytes([token]) for token in range(256)]
    assert model.vocabulary == vocabulary_of(model._handle)
