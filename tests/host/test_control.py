from __future__ import annotations

from typing import Any

import pytest

from tartlet import ConfigError, ProgramError, sync
from tartlet.control import control_input
from tartlet.testing import FakeEngine


def test_the_input_of_the_inferlet() -> None:
    """The config is passed on as JSON text."""
    given = control_input("hello", {"a": [1]}, chat=True, max_tokens=None, temperature=1)

    assert given == {
        "controller": "controller",
        "config": '{"a": [1]}',
        "prompt": "hello",
        "chat": True,
        "max_tokens": None,
        "temperature": 1.0,
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": 3}, "prompt must be Unicode text"),
        ({"config": {1, 2}}, "JSON"),
        ({"chat": "yes"}, "chat must be True or False"),
        ({"max_tokens": 0}, "max_tokens must be a whole number, at least 1"),
        ({"temperature": -1}, "temperature must be a number from 0"),
        ({"temperature": "hot"}, "temperature must be a number from 0"),
        ({"temperature": float("nan")}, "temperature must be a number from 0"),
    ],
)
def test_wrong_arguments_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    """Before anything is loaded."""
    arguments: dict[str, Any] = {"prompt": "x", "config": None, "chat": False, "max_tokens": 1, "temperature": 0.0}
    arguments |= changed

    with pytest.raises(ConfigError, match=message):
        control_input(arguments.pop("prompt"), arguments.pop("config"), **arguments)


@pytest.mark.runner
def test_inferlets_and_controllers_are_told_apart() -> None:
    """Each is refused where the other is meant, with what to do."""
    controller = "from tartlet_sdk import Controller\nclass C(Controller): pass\n"
    inferlet = "from tartlet_sdk import inferlet\n@inferlet\ndef main(): pass\n"
    engine = FakeEngine()
    with sync.Host(engine=engine, spares=0) as host:
        with pytest.raises(ProgramError, match="is an inferlet, not a controller"):
            host.control(inferlet, "prompt")
        with pytest.raises(Exception, match="tartlet run --controller"):
            host.run(controller)
    engine.close()
