"""Compares what an engine tells and holds with what is expected of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet_engine import gaps
from tartlet_engine.api import (
    Done,
    ErrorCode,
    Event,
    Failed,
    Finished,
    FinishReason,
    Forwarded,
    LimitReached,
    Opened,
    Stepped,
    StepRefused,
)
from tests.engine.conftest import Driver
from tests.engine.turmoil.ledger import Evicting, Generating, Held, Ledger, Opening, Passing, Stepping

LIMITS = {"kv_pages": "max_pages", "generated_tokens": "max_generated_tokens"}


class Events:
    """Takes up events in their order, and checks each."""

    def __init__(self, driver: Driver, ledger: Ledger, history: list[str]) -> None:
        self.driver = driver
        self.ledger = ledger
        self.history = history
        self.may_break = False  # the model may fail
        self._num_taken_up = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            Done: self._done,
            Failed: self._failed,
            Finished: self._finished,
            Forwarded: self._forwarded,
            LimitReached: self._limit_reached,
            Opened: self._opened,
            Stepped: self._stepped,
            StepRefused: self._step_refused,
        }

    def check(self) -> None:
        """Take up what has been told since, then look at every context."""
        new = self.driver.events[self._num_taken_up :]
        self._num_taken_up += len(new)
        for event in new:
            self._take_up(event)
        self.driver.core.check_integrity()
        for held in self.ledger.contexts.values():
            if held.work is None or isinstance(held.work, Passing):
                self._check_content(held)

    def _take_up(self, event: Event) -> None:
        handler = self._handlers.get(type(event))
        if handler is not None:
            self.history.append(f"    {event}")
            handler(event)

    def _check_content(self, held: Held) -> None:
        if not held.is_lost:
            sequence = self.driver.core._contexts.get(held.id)
            assert sequence.token_ids == held.content.token_ids, f"context {held.id} holds other tokens"
            positions = list(gaps.positions(sequence.gaps, 0, len(sequence.token_ids)))
            assert positions == held.content.positions, f"context {held.id} has other positions"

    def _check_tokens(self, held: Held, work: Generating) -> None:
        tokens = self.driver.tokens(work.id)
        assert tokens == held.content.continuation(len(tokens)), f"context {held.id} goes on differently"
        held.content.append(tokens)

    def _done(self, event: Done) -> None:
        if event.operation_id in self.ledger.shelf.under_way:
            self.ledger.shelf.done(event.operation_id)
        held = self.ledger.working_on(event.operation_id)
        if held is not None:
            assert isinstance(held.work, Evicting)
            held.content.evict(held.work.start, held.work.end)
            held.work = None

    def _failed(self, event: Failed) -> None:
        held = self.ledger.working_on(event.failed_id)
        assert event.error.code in self._expected_codes(event.failed_id, held), event
        if event.failed_id in self.ledger.shelf.under_way:
            self.ledger.shelf.failed(event.failed_id)
        if held is not None:
            if isinstance(held.work, Generating):
                self._check_tokens(held, held.work)
            if isinstance(held.work, Opening):
                del self.ledger.contexts[held.id]
            self.ledger.lose(held)

    def _expected_codes(self, failed_id: int, held: Held | None) -> set[ErrorCode]:
        if failed_id in self.ledger.unpublished:
            return {ErrorCode.CANCELLED}
        expected = {ErrorCode.KV_EXHAUSTED, ErrorCode.QUOTA_EXCEEDED}
        if failed_id in self.ledger.given_up:
            expected.add(ErrorCode.NOT_FOUND)
        if self.may_break:
            expected.add(ErrorCode.INTERNAL)
        if held is not None and isinstance(held.work, Opening) and not held.work.is_there:
            expected.add(ErrorCode.NOT_FOUND)
        return expected

    def _finished(self, event: Finished) -> None:
        held = self.ledger.working_on(event.generation_id)
        if held is None:
            return
        assert event.reason in (FinishReason.LENGTH, FinishReason.CANCELLED)
        if isinstance(held.work, Generating):
            num_before = len(held.content.token_ids)
            self._check_tokens(held, held.work)
            if event.reason == FinishReason.LENGTH:
                assert len(held.content.token_ids) - num_before == held.work.max_tokens
        held.work = None

    def _forwarded(self, event: Forwarded) -> None:
        held = self.ledger.working_on(event.operation_id)
        if held is None:
            return
        assert isinstance(held.work, Passing)
        for row in event.rows:
            assert row.top[0].token_id == held.work.line.next_token(held.content, row.row), f"row {row.row} differs"
        held.work.is_done = True

    def _limit_reached(self, event: LimitReached) -> None:
        assert event.allowed == self.ledger.runs[event.run_id].limits[LIMITS[event.limit]]
        self.ledger.stop(event.run_id)

    def _opened(self, event: Opened) -> None:
        held = self.ledger.working_on(event.operation_id)
        if held is None:
            return
        assert isinstance(held.work, Opening)
        positions = list(gaps.positions(event.gaps, 0, len(event.token_ids)))
        found = [
            content
            for content in held.work.candidates
            if (content.token_ids, content.positions) == (list(event.token_ids), positions)
        ]
        assert found, "what was opened was not saved"
        held.content, held.work = found[0].fork(len(positions)), None
        if any((other.adapter, other.seen_by_last) != (found[0].adapter, found[0].seen_by_last) for other in found):
            self.ledger.lose(held)  # which of them was opened, nobody can tell

    def _stepped(self, event: Stepped) -> None:
        held = self.ledger.working_on(event.generation_id)
        if held is None:
            return
        assert isinstance(held.work, Stepping)
        assert held.work.expected is not None, "nobody has asked for a step"
        expected, held.work.expected = held.work.expected, None
        assert event.sampled == expected.sampled, f"context {held.id} goes on differently"
        assert event.backtrack == expected.backtrack
        if any(limit.run_id == held.run_id for limit in self.driver.limits_reached):
            assert event.token_ids == expected.appended[: len(event.token_ids)]  # as many as the limit has allowed
        else:
            assert event.token_ids == expected.appended
        held.content.truncate(len(held.content.token_ids) - expected.backtrack)
        held.content.append(event.token_ids)

    def _step_refused(self, event: StepRefused) -> None:
        held = self.ledger.working_on(event.generation_id)
        assert held is not None
        assert isinstance(held.work, Stepping)
        assert held.work.expected is not None
        assert event.error.code == ErrorCode.INVALID_ARGUMENT
        held.work.expected = None
