"""Every example, from its folder, on the small real model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tartlet
from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def check_best_of_n(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result["candidates"]) == 3
    chances = result["probabilities"]
    assert sum(chances) == pytest.approx(1, abs=0.01)
    assert len(set(chances)) == 3, "the judge prefers one to another"
    assert result["best"] == result["candidates"][chances.index(max(chances))]
    assert all(f"    {number} | " in output for number in (1, 2, 3))
    assert f"judge | candidate {chances.index(max(chances)) + 1}: " in output
    assert (usage.forks, usage.generations) == (6, 6)
    assert usage.shared_pages >= 6, "candidates and judges share the prompt's pages"
    assert usage.cached_tokens > usage.prompt_tokens / 4


def check_chat(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result) == 2
    assert all(answer.strip() for answer in result)
    assert usage.generations == 2
    assert usage.cached_tokens > 0, "the second turn goes on from the first"


def check_hello(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert (result, output) == ("Hello, Tartlet!", "This is printed by a program in a sandbox.\n")
    assert usage.generated_tokens == 0


def check_json_extraction(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert list(result) == ["customer", "first_item", "urgent", "delivery"]
    assert result["first_item"]["quantity"] in (1, 2, 3, 4, 5)
    assert result["delivery"] in ("pick-up", "office", "home")
    assert isinstance(result["urgent"], bool)
    assert "Ada" in result["customer"]
    assert json.loads(output.splitlines()[0]) == result
    assert output.splitlines()[2] in ("friendly: yes", "friendly: no", "friendly: hard to say")


def check_parallel_generation(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result.strip()
    assert usage.generations == 3


def check_text_completion(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert "red" in result
    assert 0 < usage.generated_tokens <= 16


def check_tree_of_thought(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert isinstance(result, dict)
    assert usage.forks >= 2


CASES: dict[str, tuple[dict[str, Any], Callable[[Any, str, tartlet.RunUsage], None]]] = {
    "best_of_n": ({"n": 3}, check_best_of_n),
    "chat": ({"questions": ["What is the capital of France?", "And of Italy?"]}, check_chat),
    "hello": ({"name": "Tartlet"}, check_hello),
    "json_extraction": ({}, check_json_extraction),
    "parallel_generation": ({}, check_parallel_generation),
    "text_completion": ({"max_tokens": 16}, check_text_completion),
    "tree_of_thought": ({"depth": 1, "branches": 2, "keep": 1}, check_tree_of_thought),
}


@pytest.mark.parametrize("name", CASES)
def test_example(real_host: sync.Host, name: str) -> None:
    """It runs as it is, does what it says, and leaves nothing behind."""
    given, check = CASES[name]

    run = real_host.start(real_host.load(EXAMPLES / name), given, seed=1)
    output = "".join(event.text for event in run if isinstance(event, tartlet.Output))

    check(run.result(), output, run.usage)


def test_every_example_is_here() -> None:
    """No example goes without a test."""
    assert {path.parent.name for path in EXAMPLES.glob("*/main.py")} == set(CASES)
