"""Forward passes of the fake engine: answered at once, from a model that counts up."""

from __future__ import annotations

import math

import pytest

from tartlet.testing.fake_forward_commands import FakeForwardCommands
from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    CommitForward,
    DiscardForward,
    ErrorCode,
    Failed,
    Forward,
    Forwarded,
    LimitReached,
    OpenRun,
    RowRequest,
    Sampling,
)


def test_a_pass_is_answered_and_committed(state: FakeState) -> None:
    """Each row's most likely token is the next number; what is committed is in the context."""
    handlers = FakeForwardCommands(state).handlers
    state.contexts[2] = FakeContext(2, 1, [5, 6])
    state.runs.setdefault(1, OpenRun(1))
    state.num_generated.setdefault(1, 0)

    request = RowRequest(1, Sampling(seed=0), top=1, token_ids=(9,), entropy=True, logits=True)
    handlers[Forward](Forward(7, 2, (7, 8, 3), (-1, 0, -1), requests=(RowRequest(-1, top=2), request), logprobs=True))

    (event,) = state.events
    assert isinstance(event, Forwarded)
    assert event.logprobs[:2] == pytest.approx([math.log(0.5)] * 2)
    assert event.logprobs[2] < -3
    assert [each.token_id for each in event.rows[0].top] == [7, 0]
    sampled = event.rows[1].sampled
    assert sampled is not None
    assert sampled.token_id == 9
    assert event.rows[1].entropy == pytest.approx(
        math.log(2) + 0.5 * math.log(state.info.vocabulary_size - 1), abs=0.01
    )
    handlers[CommitForward](CommitForward(2, (0, 1)))
    handlers[DiscardForward](DiscardForward(2))
    assert state.contexts[2].token_ids == [5, 6, 7, 8]


def test_limits_hold(state: FakeState) -> None:
    """A pass that is too long is refused, and one that samples too much ends the run."""
    handlers = FakeForwardCommands(state).handlers
    state.runs[1] = OpenRun(1, max_generated_tokens=1)
    state.num_generated[1] = 0
    state.contexts[2] = FakeContext(2, 1, [5])

    handlers[Forward](Forward(7, 2, (1,) * state.info.context_len))
    request = RowRequest(-1, Sampling(seed=0))
    handlers[Forward](Forward(8, 2, (), requests=(request, request)))

    failed, reached = state.events
    assert isinstance(failed, Failed)
    assert failed.error.code is ErrorCode.CONTEXT_OVERFLOW
    assert isinstance(reached, LimitReached)
