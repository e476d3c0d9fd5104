"""What the fake engine does with commands about generations, and with generations in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tartlet.testing.byte_text import ByteText
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_state import FakeState
from tartlet.testing.fake_step_commands import FakeStepCommands
from tartlet.testing.fake_steps import FakeSteps
from tartlet_engine.api import CancelGeneration, EngineError, ErrorCode, Finished, FinishReason, Generate, Usage


class FakeGenerationCommands:
    """Start, advance and cancel generations.

    Args:
        state: What the fake engine knows.
        reply: The text that follows a prompt.
    """

    def __init__(self, state: FakeState, reply: Callable[[str], str]) -> None:
        self.failures: list[EngineError] = []
        """What the next generations fail with."""
        self._state = state
        self._reply = reply
        self._text = ByteText()
        self.steps = FakeStepCommands(state)
        self.handlers: dict[type, Callable[[Any], None]] = {
            Generate: self._generate,
            CancelGeneration: self._cancel,
            **self.steps.handlers,
        }

    def step(self) -> None:
        """Give every generation a token, and carry out the answers of stepped ones."""
        self.steps.step()
        for generation in list(self._state.generations.values()):
            if generation.command.generation_id in self._state.generations:  # not ended by another's limit
                self._advance(generation)

    def _generate(self, command: Generate) -> None:
        state = self._state
        context = state.contexts[command.context_id]
        if self.failures:
            state.answer(command.generation_id, self.failures.pop(0))
            return
        for what, number, belongings in (
            ("constraint", command.constraint_id, state.constraints),
            ("mask", command.mask_id, state.masks),
        ):
            if number is not None and not belongings.is_of(number, context.run_id):
                error = EngineError(ErrorCode.NOT_FOUND, f"the run has no {what} {number}")
                state.answer(command.generation_id, error)
                return
        num_cached = context.num_computed
        if not state.prefill_within_limits(context, command.generation_id):
            return
        try:
            reply = self._reply(self._text.decode(context.token_ids))
            if not isinstance(reply, str):
                raise TypeError(f"a reply must be a str, got {reply!r}")
        except Exception as error:  # the test's own code: whoever waits for the reply hears of it
            message = f"the reply of the FakeEngine failed: {type(error).__name__}: {error}"
            state.answer(command.generation_id, EngineError(ErrorCode.INTERNAL, message))
            return
        state.num_prompt[context.run_id] += len(context.token_ids)
        if command.stepped:
            state.steps[command.generation_id] = FakeSteps(command, context, reply, state.info.context_len)
            return
        generation = FakeGeneration(command, context, reply, state.info.context_len, num_cached)
        state.generations[command.generation_id] = generation

    def _cancel(self, command: CancelGeneration) -> None:
        if command.generation_id in self._state.generations:
            self._state.generations[command.generation_id].is_cancelled = True
        self.steps.cancel(command.generation_id)

    def _advance(self, generation: FakeGeneration) -> None:
        state = self._state
        context = generation.context
        generation_id = generation.command.generation_id
        reason: FinishReason | None = FinishReason.CANCELLED
        if not generation.is_cancelled:
            chunk, reason = generation.step()
            state.events.append(chunk)
            state.totals.generated_tokens += 1
            state.num_generated[context.run_id] += 1
            if reason is None and not state.compute(context, generation_id):
                del state.generations[generation_id]
                return
            if state.is_over_limit(context.run_id):
                return
        if reason is not None:
            del state.generations[generation_id]
            state.events.append(Finished(generation_id, reason, self._usage(generation), generation.stop_string))

    def _usage(self, generation: FakeGeneration) -> Usage:
        return Usage(
            prompt_tokens=generation.num_prompt,
            cached_tokens=generation.num_cached,
            generated_tokens=generation.num_generated,
            pages=len(generation.context.pages),
            shared_pages=self._state.pages.num_shared(generation.context),
            first_token_ns=generation.first_token_ns,
            total_ns=generation.elapsed_ns,
        )
