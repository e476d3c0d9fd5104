"""Every example runs, on a fake engine that answers what the example needs."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tartlet import sync
from tartlet.events import Output, Variable
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.runner

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/main.py"))


ORDER = '{"customer": "Ada", "first_item": {"product": "tart", "quantity": 2}, "urgent": false, "delivery": "home"}'


def reply(prompt: str) -> str:
    """Play the model: inventors get idea after idea, judges the place of the second, most others a sentence."""
    if "orders out of mails" in prompt:
        return "yes" if "friendly" in prompt else ORDER
    if unsorted := re.findall(r"Sort: (\[.*?\])", prompt):
        return str(sorted(json.loads(unsorted[-1])))
    if prompt.endswith("So the answer is "):
        return "9."
    if "Reply with a list" in prompt and "Now write" not in prompt:
        return "- Fine points\n- Other points\n"
    if "The best is number" in prompt:
        places = re.findall(r"(\d)\. Idea 2", prompt)
        return places[0] if places else "1"
    if "Join these" in prompt:
        return "Both: " + " ".join(re.findall(r"About the \w+\.", prompt))
    if asked := re.findall(r"what a dog (look|sound)s like", prompt):
        return f"About the {asked[0]}s."
    if "Invent" in prompt:
        return f"Idea {next(ideas)}"
    return "2, I think." if "from 0 to 10" in prompt[-400:] else "A fine sentence."


ideas = itertools.count(1)


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    """An engine that plays the model."""
    engine = FakeEngine(reply)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def host(engine: FakeEngine) -> Iterator[sync.Host]:
    """A host on it."""
    with sync.Host(engine=engine) as host:
        yield host


def run(host: sync.Host, name: str, input: Any = None) -> tuple[str, Any]:
    """What an example prints, and its result."""
    started = host.start(EXAMPLES / name, input)
    text = "".join(event.text for event in started if isinstance(event, Output))
    return text, started.result()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_and_leaves_nothing(host: sync.Host, engine: FakeEngine, name: str) -> None:
    """Without arguments it prints something, returns something, and frees every page."""
    text, result = run(host, name)

    assert text or result
    deadline = time.monotonic() + 5
    while engine.stats().runs and time.monotonic() < deadline:
        time.sleep(0.001)
    assert (engine.stats().runs, engine.stats().pages_held) == (0, 0)
    engine.check_integrity()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_how_it_is_run(name: str) -> None:
    """Its README has the command, and its module a description."""
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")

    assert f"    tartlet run examples/{name}" in readme
    assert (EXAMPLES / name / "main.py").read_text(encoding="utf-8").startswith('"""')
    assert f"[{name}]({name}/)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_best_of_n_takes_the_judges_choice(host: sync.Host) -> None:
    """It prints every candidate with its number, and returns the one that the judges name, wherever it stands."""
    text, result = run(host, "best_of_n", {"n": 3, "task": "Invent something."})
    best = result["candidates"].index("Idea 2")

    assert sorted(line.split("|")[0].strip() for line in text.splitlines()) == ["1", "2", "3", "judge"]
    assert f"judge | candidate {best + 1}: 100%" in text
    assert result["best"] == "Idea 2"
    assert result["probabilities"] == [float(number == best) for number in range(3)]


def test_best_of_n_judges_any_number_of_candidates(host: sync.Host) -> None:
    """With more candidates than digits each is still judged in nine places; a single one is the best."""
    _, many = run(host, "best_of_n", {"n": 11})
    _, single = run(host, "best_of_n", {"n": 1})

    assert len(many["probabilities"]) == len(many["candidates"]) == 11
    assert sum(many["probabilities"]) == pytest.approx(1, abs=0.01)
    assert single["probabilities"] == [1.0]


def test_chat_computes_only_what_is_new(host: sync.Host) -> None:
    """Every turn finds all of the conversation before it in the cache."""
    text, answers = run(host, "chat", {"questions": ["a", "b", "c"]})
    cached = [int(number) for number in re.findall(r"\((\d+) of", text)]

    assert answers == ["A fine sentence."] * 3
    assert cached[0] == 0 < cached[1] < cached[2]


def test_fork_join_joins_what_the_others_wrote(host: sync.Host) -> None:
    """B12: the client hears of both variables; the fork that waited for them has both in its prompt."""
    started = host.start(EXAMPLES / "fork_join", {"thing": "a dog"})
    told = {event.name: event.value for event in started if isinstance(event, Variable)}

    assert told == {"looks": "About the looks.", "sounds": "About the sounds."}
    assert started.result() == "Both: About the looks. About the sounds."


def test_tree_of_thought_follows_the_best(host: sync.Host) -> None:
    """It goes as deep as asked and returns the steps on the way, with their score."""
    _, result = run(host, "tree_of_thought", {"depth": 3, "branches": 2})

    assert result == {"answer": "A fine sentence.", "steps": ["A fine sentence."] * 3, "score": 2}


def test_graph_of_thoughts_merges_what_it_has_sorted(host: sync.Host) -> None:
    """Parts are sorted, then pairs of them, until one is left; an odd one goes on as it is."""
    text, result = run(host, "graph_of_thoughts", {"numbers": [9, 1, 5, 0, 7], "part": 2, "ways": 1})

    assert result == {"numbers": [0, 1, 5, 7, 9], "errors": 0}
    assert text.splitlines()[:2] == ["[1, 9] + [0, 5] | [7]", "[0, 1, 5, 9] + [7]"]


def test_self_consistency_counts(host: sync.Host) -> None:
    """What all say has all votes."""
    _, result = run(host, "self_consistency", {"ways": 3})

    assert result == {"answer": 9, "share": 1.0, "answers": [9, 9, 9]}


def test_skeleton_of_thought_writes_every_point(host: sync.Host) -> None:
    """Each point of the skeleton has its text."""
    _, result = run(host, "skeleton_of_thought")

    assert result == {"points": ["Fine points", "Other points"], "texts": ["A fine sentence."] * 2}
