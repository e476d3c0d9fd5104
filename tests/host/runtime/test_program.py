import json
from typing import Any

import pytest


def test_a_component_needs_no_runner(fake: Any, component: Any) -> None:
    """There is nothing to give to a runner."""
    assert fake.host.load(component("")).runner_json("null") is None


@pytest.mark.runner
def test_what_a_runner_is_given(fake: Any) -> None:
    """Main module, files with their code, and the input."""
    program = fake.host.load("from tartlet_sdk import inferlet\n@inferlet\ndef main(): pass\n")

    given = json.loads(program.runner_json('{"n": 5}'))

    assert (given["main"], given["input"]) == ("main", {"n": 5})
    assert set(given["files"]["main.py"]) == {"text", "code"}
