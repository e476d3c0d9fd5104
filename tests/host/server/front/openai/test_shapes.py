from __future__ import annotations

from tartlet.server.front.openai.answers import Usage
from tartlet.server.front.openai.shapes import About, data_event, usage_object


def test_ids_are_those_of_the_run() -> None:
    """So that a client can ask about the run that has answered."""
    about = About("run_ab12", 5, "m", "fp_1")

    assert about.id("chatcmpl-") == "chatcmpl-ab12"
    assert about.id("call_", 0, 1) == "call_ab12_0_1"


def test_events_are_one_line() -> None:
    """Whatever the text holds."""
    assert data_event({"a": "x\n\u2028"}) == 'data: {"a":"x\\n\\u2028"}\n\n'


def test_usage_adds_up() -> None:
    """What was predicted and not used is what was rejected."""
    told = usage_object(Usage(10, 4, 5, drafted_tokens=8, accepted_tokens=3))

    assert told["total_tokens"] == 15
    assert told["completion_tokens_details"]["rejected_prediction_tokens"] == 5
