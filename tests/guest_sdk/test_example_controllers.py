"""The example controllers, on the tiny model, whose words are nonsense but whose tokens are real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet import sync

pytestmark = pytest.mark.runner

FOLDER = Path(__file__).parent.parent.parent / "examples" / "controllers"


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host with the tiny model."""
    with sync.Host("tiny", threads=1, kv_pages=256) as host:
        yield host


@pytest.mark.parametrize("seed", range(3))
def test_a_form_is_json_of_its_fields(host: sync.Host, seed: int) -> None:
    """Whatever the model would write; a text and a number, in the order of the fields."""
    config = {"name": "text", "age": "number", "home": "text"}
    result = host.control(FOLDER / "form.py", "A person:", config, temperature=1.5, seed=seed)

    (sequence,) = result["sequences"]
    filled = json.loads(sequence["text"])
    assert list(filled) == list(config)
    assert isinstance(filled["name"], str)
    assert isinstance(filled["age"], int) or len(str(filled["age"])) > 15
    assert sequence["finish_reason"] == "stopped"


def test_a_word_is_banned_however_it_is_spelt(host: sync.Host) -> None:
    """What the model wrote without the controller it does not write with it, in any case or split."""
    options: dict[str, Any] = {"temperature": 1.2, "seed": 5, "max_tokens": 60}
    free = host.control(FOLDER / "ban_word.py", "Once upon", "never in any text", **options)
    text = free["sequences"][0]["text"]
    for word in {text.lower()[at : at + 2] for at in range(2, 40, 3)}:
        banned = host.control(FOLDER / "ban_word.py", "Once upon", word, **options)["sequences"][0]["text"]
        if word.isascii() and word.isprintable():
            assert word not in banned.lower()
            assert banned != text


@pytest.mark.parametrize("name", ["form", "ban_word"])
def test_the_readme_says_how_each_is_run(name: str) -> None:
    """With its config."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert f"    tartlet run --controller examples/controllers/{name}.py --config '" in readme
