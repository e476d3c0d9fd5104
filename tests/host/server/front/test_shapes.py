from __future__ import annotations

import dataclasses
import json

import msgspec
import pytest

from tartlet.events import RunUsage
from tartlet.server.front.errors import ApiError
from tartlet.server.front.live_run import LiveRun
from tartlet.server.front.run_events import Outcome
from tartlet.server.front.shapes import (
    ControlBody,
    InferletShape,
    RunShape,
    Usage,
    inferlet_fields,
    json_text,
    live_run_fields,
    run_record_fields,
)
from tartlet.server.front.storage import InferletRecord, RunRecord
from tartlet.server.raw_json import to_json
from tartlet.server.requests import Parameter, ProgramFacts


def test_all_figures_of_a_run_are_described() -> None:
    """A new one does not go missing."""
    assert [*Usage.model_fields] == [field.name for field in dataclasses.fields(RunUsage)]


async def test_a_run_looks_the_same_from_memory_and_from_the_record() -> None:
    """As it is described."""
    run = LiveRun("acme", "p", "d")
    run.finish(Outcome("succeeded", "[1]"))
    ms = run.created_ms
    record = RunRecord(run.run_id, "acme", "d", "p", "succeeded", ms, ms, None, "[1]", "", run.usage)
    live, kept = [json.loads(to_json(fields)) for fields in (live_run_fields(run), run_record_fields(record))]

    assert live == kept
    assert live["result"] == [1]
    assert [*RunShape.model_fields] == [*live]
    RunShape.model_validate(live)


def test_an_inferlet_as_it_is_described() -> None:
    """With its parameters, if they are known."""
    facts = ProgramFacts(True, False, ("a:b/c",), (Parameter("n", is_required=True),), "text")
    record = InferletRecord("acme", "d", "source", 3, facts, 1000, ("n",))
    fields = inferlet_fields(record)

    assert [*InferletShape.model_fields] == [*fields]
    InferletShape.model_validate(fields)
    unknown = msgspec.structs.replace(record, facts=ProgramFacts(True, False))
    assert inferlet_fields(unknown)["parameters"] is None


def test_json_for_all_readers() -> None:
    """Without the numbers that only Python knows."""
    assert json_text({"a": "\ud800"}, "input") == '{"a": "\\ud800"}'
    with pytest.raises(ApiError) as error:
        json_text(float("inf"), "input")
    assert error.value.param == "input"


def test_a_controllers_settings() -> None:
    """They are passed on as JSON."""
    control = ControlBody(prompt="Hi", config={"n": 1}, chat=True, max_tokens=5).to_control()

    assert (control.prompt, control.config_json, control.chat, control.max_tokens) == ("Hi", '{"n": 1}', True, 5)
