"""Every example, from its folder, on the small real model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tartlet
from tartlet import sync

pytestmark = [pytest.mark.model, pytest.mark.runner, pytest.mark.slow]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def check_attention_sink(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert (result["written"], result["held"], usage.generated_tokens) == (96, 4 + 16, 96)
    assert result["most_held"] <= 4 + 16 + 16
    assert result["positions"] > 96, "what was evicted still counts"
    assert result["positions"] + result["room"] == 8192
    assert result["text"] in output
    assert usage.generations == 6


def check_beam_search(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result["texts"]) == len(set(result["texts"])) == 3
    assert result["logprobs"] == sorted(result["logprobs"], reverse=True)
    assert result["logprobs"][0] >= result["greedy"] - 0.01, (
        "of eight tokens the search finds a text at least as likely"
    )
    assert output.endswith(f"{result['texts'][0]}\n")
    assert usage.generated_tokens == 8, "only greedy decoding generates"
    assert usage.forks <= 1 + 3 * 8


def check_backtrack_and_replace(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result["checked"] > 0
    assert result["text"] in output
    for left, right, total in re.findall(r"(\d+) \+ (\d+) = (\d+)\D", result["text"])[: result["checked"]]:
        assert int(left) + int(right) == int(total)
    assert all(wrong not in result["text"] for wrong in result["corrected"])


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


def check_trigger_phrase(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result["chosen"]
    assert set(result["chosen"]) <= {"teal", "ochre", "maroon"}
    assert result["text"].startswith(f"The colour is {result['chosen'][0]}")


def check_watermark(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result["text"] in output
    assert result["z_marked"] > 4 > result["z_plain"]


def check_chat(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result) == 2
    assert all(answer.strip() for answer in result)
    assert usage.generations == 2
    assert usage.cached_tokens > 0, "the second turn goes on from the first"


def check_choice_by_logprob(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert list(result["chances"]) == ["honey", "milk", "paper", "steel"]
    assert sum(result["chances"].values()) == pytest.approx(1, abs=0.01)
    assert result["chances"][result["choice"]] == max(result["chances"].values())
    assert result["unsure"] > 0
    assert all(re.fullmatch(r"'.*': -\d+\.\d\d", line) for line in output.splitlines())
    assert "".join(line.split("'")[1] for line in output.splitlines()) == result["choice"]
    assert (usage.generated_tokens, usage.generations) == (0, 0)


def check_fork_join(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result.strip()
    assert usage.forks == 3
    assert usage.generations == 3


def check_constrained_beam_search(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(set(result["texts"])) == len(result["texts"]) == 2
    assert all(re.fullmatch("[A-Z][a-z]+ [1-9][0-9]?, 19[0-9][0-9]", text) for text in result["texts"])
    assert result["logprobs"] == sorted(result["logprobs"], reverse=True)
    assert output.splitlines()[-1] == " | ".join(result["texts"])


def check_contrastive_decoding(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert "Lyon" in result["contrastive"], "it says what the text says"
    assert result["plain"]
    assert result["plain"] != result["contrastive"]


def check_graph_of_thoughts(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result["numbers"]) == 4
    assert all(0 <= number <= 9 for number in result["numbers"])
    assert output.startswith("["), "the parts that are merged are printed"
    assert output.endswith(f"{result['numbers']}, {result['errors']} errors\n")
    assert usage.forks == 6, "two parts and one merge, in two ways each"


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


def check_length_steering(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert 12 <= result["words"] == len(result["text"].split()) <= 48
    assert result["ends_well"] == result["text"].endswith((".", "!", "?"))
    assert usage.generations == 1


def check_self_consistency(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert len(result["answers"]) == 3
    assert result["answers"].count(result["answer"]) == round(3 * result["share"])
    assert result["share"] == max(round(result["answers"].count(each) / 3, 3) for each in result["answers"])
    assert all(f"way {way}: " in output for way in (1, 2, 3))
    assert usage.generations == 6


def check_skeleton_of_thought(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert 2 <= len(result["points"]) == len(result["texts"]) <= 4
    assert all(re.fullmatch("[A-Z][a-z]+( [a-z]+){1,3}", point) for point in result["points"])
    assert all(result["texts"])
    assert usage.forks == len(result["points"])


def check_speculative_decoding(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    for name in ("from the prompt", "expected"):
        report = result[name]
        assert report["same"], "guesses change nothing"
        assert 0 < report["accepted"] <= report["drafted"]
        assert report["steps"] + report["accepted"] == result["tokens"]
    assert result["expected"]["steps"] < result["tokens"] / 2
    assert result["text"] in output
    assert usage.generations == 3


def check_text_completion(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert "red" in result
    assert 0 < usage.generated_tokens <= 16


def check_tree_of_thought(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert isinstance(result, dict)
    assert usage.forks >= 2


def check_regex_extraction(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    forms = [r"20\d\d-\d\d-\d\d", r"\d\d:\d\d", r"\d{3,5} \d{3}-\d{4}", r"[a-z]+@[a-z]+\.(com|de|org)"]
    assert len(result) == 4
    assert all(each is None or re.fullmatch(form, each) for form, each in zip(forms, result.values(), strict=True))
    assert any(result.values())
    assert usage.forks == 4
    assert usage.cached_tokens > usage.prompt_tokens / 3, "all share the note"


def check_cite_from_prompt(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert result["place"] >= 0
    assert len(result["quotation"].split()) >= 1
    assert f"[{result['quotation']}]" in output
    assert result["answer"]


def check_boosted_choice(result: Any, output: str, usage: tartlet.RunUsage) -> None:
    assert sum(result["own"]) == pytest.approx(1, abs=0.01)
    assert sum(result["boosted"]) == pytest.approx(1, abs=0.01)
    odds = [chances[1] / (1 - chances[1]) for chances in (result["own"], result["boosted"])]
    assert odds[1] / odds[0] == pytest.approx(4.48, rel=0.1), "a boost of 1.5 is a factor of e to the 1.5"
    assert output.count("->") == 4


CASES: dict[str, tuple[dict[str, Any], Callable[[Any, str, tartlet.RunUsage], None]]] = {
    "attention_sink": ({"prompt": "The sea was calm.", "tokens": 96, "window": 16}, check_attention_sink),
    "beam_search": ({"tokens": 8}, check_beam_search),
    "backtrack_and_replace": ({}, check_backtrack_and_replace),
    "best_of_n": ({"n": 3}, check_best_of_n),
    "chat": ({"questions": ["What is the capital of France?", "And of Italy?"]}, check_chat),
    "choice_by_logprob": ({}, check_choice_by_logprob),
    "boosted_choice": ({}, check_boosted_choice),
    "cite_from_prompt": ({}, check_cite_from_prompt),
    "fork_join": ({}, check_fork_join),
    "constrained_beam_search": ({"width": 2}, check_constrained_beam_search),
    "contrastive_decoding": ({"tokens": 16}, check_contrastive_decoding),
    "graph_of_thoughts": ({"numbers": [5, 3, 8, 1], "part": 2, "ways": 2}, check_graph_of_thoughts),
    "hello": ({"name": "Tartlet"}, check_hello),
    "json_extraction": ({}, check_json_extraction),
    "parallel_generation": ({}, check_parallel_generation),
    "regex_extraction": ({}, check_regex_extraction),
    "length_steering": ({"words": 12}, check_length_steering),
    "self_consistency": ({"ways": 3}, check_self_consistency),
    "skeleton_of_thought": ({}, check_skeleton_of_thought),
    "speculative_decoding": ({}, check_speculative_decoding),
    "text_completion": ({"max_tokens": 16}, check_text_completion),
    "trigger_phrase": ({}, check_trigger_phrase),
    "watermark": ({"tokens": 60}, check_watermark),
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
