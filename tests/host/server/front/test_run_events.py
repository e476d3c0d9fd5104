from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.errors import GuestError
from tartlet.events import Log, Output, RunUsage, Variable
from tartlet.server.failures import to_failure
from tartlet.server.front.run_events import (
    Dropped,
    EventBuffer,
    Numbered,
    Outcome,
    event_fields,
    outcome_fields,
    read_fields,
)


def read_all(buffer: EventBuffer, after: int = 0) -> list[Numbered | Dropped]:
    reads = []
    while (read := buffer.after(after)) is not None:
        reads.append(read)
        after = read.number if isinstance(read, Numbered) else read.last
    return reads


@given(st.lists(st.integers(0, 400), max_size=40), st.integers(0, 45), st.integers(1, 3000))
def test_readers_get_every_event_or_hear_which_are_gone(sizes: list[int], after: int, max_bytes: int) -> None:
    """Whatever the sizes, each event after the reader's place is told of once, in order."""
    buffer = EventBuffer(max_bytes)
    for size in sizes:
        buffer.append(Output("x" * size))
    numbers = [
        number
        for read in read_all(buffer, after)
        for number in ([read.number] if isinstance(read, Numbered) else range(read.first, read.last + 1))
    ]

    assert numbers == [*range(after + 1, len(sizes) + 1)]
    assert buffer.num_bytes <= max_bytes or len(read_all(buffer)) <= 2


def test_what_does_not_fit_is_told_once() -> None:
    """As a span, before the events that are left."""
    buffer = EventBuffer(1000)
    for index in range(10):
        buffer.append(Output(f"{index}" * 200))

    first, *rest = read_all(buffer)
    assert first == Dropped(1, 7)
    assert read_fields(first) == {"type": "dropped", "seq": 7, "first": 1, "last": 7}
    assert [read.number for read in rest if isinstance(read, Numbered)] == [8, 9, 10]


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (Output("hi"), {"type": "output", "text": "hi"}),
        (Log("warn", "careful"), {"type": "log", "level": "warn", "message": "careful"}),
        (Variable("x", "1", 2), {"type": "variable", "name": "x", "value": "1", "version": 2}),
    ],
)
def test_events_as_json(event: Output | Log | Variable, fields: dict[str, object]) -> None:
    """Each has its type."""
    assert event_fields(event) == fields
    assert read_fields(Numbered(3, event)) == {**fields, "seq": 3}


def test_usage_as_json() -> None:
    """By the names of `RunUsage`."""
    fields = event_fields(RunUsage(generated_tokens=3))

    assert fields["type"] == "usage"
    assert fields["usage"]["generated_tokens"] == 3


def test_how_a_run_has_ended_as_json() -> None:
    """A result, or an error in the shape of all errors."""
    failed = Outcome("failed", failure=to_failure(GuestError("boom")))

    assert outcome_fields(None) == {"status": "running", "result": None, "error": None}
    assert outcome_fields(Outcome("succeeded", '{"n": 1}'))["result"].text == '{"n": 1}'
    assert outcome_fields(failed)["error"]["code"] == "guest_error"
    with pytest.raises(GuestError, match="boom"):
        failed.raise_failure()
