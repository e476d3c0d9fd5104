"""What the fake engine does with commands, step by step. No threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_constraint_commands import FakeConstraintCommands
from tartlet.testing.fake_context_commands import FakeContextCommands
from tartlet.testing.fake_forward_commands import FakeForwardCommands
from tartlet.testing.fake_generation_commands import FakeGenerationCommands
from tartlet.testing.fake_page_time import PageTime
from tartlet.testing.fake_saved_commands import FakeSavedCommands
from tartlet.testing.fake_state import FakeState
from tartlet_engine.api import (
    CloseRun,
    Command,
    EngineError,
    EngineStats,
    Event,
    Fence,
    ModelInfo,
    OpenRun,
    PublishPrefix,
    RunClosed,
    UnpublishPrefix,
)


class FakeCore:
    """Give each command to who carries it out, and step. Not thread-safe.

    Args:
        info: The model's facts.
        reply: The text that follows a prompt.
    """

    def __init__(self, info: ModelInfo, reply: Callable[[str], str]) -> None:
        self._state = FakeState(info)
        self._generations = FakeGenerationCommands(self._state, reply)
        self._handlers: dict[type, Callable[[Any], None]] = {
            OpenRun: self._open_run,
            CloseRun: self._close_run,
            Fence: self._fence,
            PublishPrefix: self._publish,
            UnpublishPrefix: lambda command: None,
            **FakeContextCommands(self._state).handlers,
            **FakeConstraintCommands(self._state).handlers,
            **FakeForwardCommands(self._state).handlers,
            **self._generations.handlers,
            **FakeSavedCommands(self._state).handlers,
        }

    @property
    def failures(self) -> list[EngineError]:
        """What the next generations fail with."""
        return self._generations.failures

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        has_answers = any(steps.answer is not None for steps in self._state.steps.values())
        return bool(self._state.generations or has_answers or self._state.events)

    def stats(self) -> EngineStats:
        """Give the counters."""
        return self._state.stats()

    def check_integrity(self) -> None:
        """Raise AssertionError unless pages, contexts and generations add up."""
        self._state.check_integrity()

    def step(self) -> list[Event]:
        """Give every generation a token; the events since the last step."""
        self._state.totals.steps += 1
        self._generations.step()
        self._state.note_page_times()
        events, self._state.events = self._state.events, []
        return events

    def execute(self, command: Command) -> None:
        """Carry out a command."""
        self._handlers[type(command)](command)

    def _open_run(self, command: OpenRun) -> None:
        self._state.runs[command.run_id] = command
        self._state.num_generated[command.run_id] = 0
        self._state.page_times[command.run_id] = PageTime()

    def _close_run(self, command: CloseRun) -> None:
        run_id = command.run_id
        for context in [c for c in self._state.contexts.values() if c.run_id == run_id]:
            self._state.free(context.context_id)
        del self._state.runs[run_id]
        page_time = self._state.page_times.pop(run_id)
        page_time.add(-page_time.num_pages)
        prompt, generated = self._state.num_prompt.pop(run_id, 0), self._state.num_generated.pop(run_id)
        if command.tells_totals:
            self._state.events.append(RunClosed(run_id, prompt, generated, page_time.total_ns))
        for belongings in (self._state.constraints, self._state.masks, self._state.matchers):
            belongings.close_run(run_id)

    def _fence(self, command: Fence) -> None:
        self._state.answer(command.operation_id)

    def _publish(self, command: PublishPrefix) -> None:
        """There is no prefix cache, but nothing depends on one."""
        self._state.answer(command.prefix_id)
