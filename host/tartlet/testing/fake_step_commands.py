"""What the fake engine does with commands about stepped generations, and with those in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.fake_pages import FakeContext
from tartlet.testing.fake_state import FakeState
from tartlet.testing.fake_steps import FakeSteps
from tartlet_engine.api import (
    AnswerStep,
    EngineError,
    ErrorCode,
    Failed,
    Finished,
    FinishReason,
    ForkSteps,
    Generate,
    StepRefused,
    Usage,
)


class FakeStepCommands:
    """Take answers, fork and advance stepped generations."""

    def __init__(self, state: FakeState) -> None:
        self._state = state
        self.handlers: dict[type, Callable[[Any], None]] = {AnswerStep: self._answer, ForkSteps: self._fork}

    def step(self) -> None:
        """Carry out all answers."""
        for steps in list(self._state.steps.values()):
            if steps.answer is not None and steps.command.generation_id in self._state.steps:
                self._advance(steps)

    def cancel(self, generation_id: int) -> None:
        """End one, if there is one by that id."""
        if (steps := self._state.steps.pop(generation_id, None)) is not None:
            self._finish(steps, FinishReason.CANCELLED)

    def _answer(self, command: AnswerStep) -> None:
        steps = self._state.steps.get(command.generation_id)
        if steps is None:
            return
        if (message := steps.refusal(command.answer)) is not None:
            error = EngineError(ErrorCode.INVALID_ARGUMENT, message)
            self._state.events.append(StepRefused(command.generation_id, error))
        else:
            steps.answer = command.answer

    def _fork(self, command: ForkSteps) -> None:
        state = self._state
        parent = state.steps.get(command.generation_id)
        if parent is None:
            error = EngineError(ErrorCode.NOT_FOUND, f"there is no generation {command.generation_id}")
            state.events.append(Failed(command.child_generation_id, error))
            return
        context = FakeContext(command.child_context_id, parent.context.run_id, adapter=parent.context.adapter)
        state.contexts[context.context_id] = context
        state.pages.fork(parent.context, context, len(parent.context.token_ids))
        told = parent.command
        child = Generate(
            command.child_generation_id, context.context_id, told.sampling, told.stop, told.num_logprobs, stepped=True
        )
        state.steps[command.child_generation_id] = parent.fork(child, context)

    def _advance(self, steps: FakeSteps) -> None:
        state, generation_id = self._state, steps.command.generation_id
        num_before, num_tokens = steps.num_generated, len(steps.context.token_ids)
        stepped = steps.step()
        if stepped.backtrack:
            tokens = list(steps.context.token_ids)
            state.pages.truncate(steps.context, num_tokens - stepped.backtrack)
            steps.context.token_ids[:] = tokens
        state.events.append(stepped)
        state.totals.generated_tokens += steps.num_generated - num_before
        state.num_generated[steps.context.run_id] += steps.num_generated - num_before
        if not state.compute(steps.context, generation_id):
            del state.steps[generation_id]
        elif not state.is_over_limit(steps.context.run_id) and stepped.finish_reason is not None:
            del state.steps[generation_id]
            self._finish(steps, stepped.finish_reason)

    def _finish(self, steps: FakeSteps, reason: FinishReason) -> None:
        usage = Usage(
            prompt_tokens=steps.num_prompt,
            cached_tokens=steps.num_cached,
            generated_tokens=steps.num_generated,
            pages=len(steps.context.pages),
            shared_pages=self._state.pages.num_shared(steps.context),
            first_token_ns=steps.first_token_ns,
            total_ns=steps.elapsed_ns,
            forced_tokens=steps.num_forced,
        )
        self._state.events.append(Finished(steps.command.generation_id, reason, usage, steps.stop_string))
