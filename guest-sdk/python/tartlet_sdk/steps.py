"""Generating token by token, with the program in control."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.answer import NEXT, Splice, answer, plain_answer
from tartlet_sdk.draft import TokenLogprobs, Usage
from tartlet_sdk.errors import TartletError, Unavailable
from tartlet_sdk.host_call import call, kebab
from tartlet_sdk.mask import Mask, mask_id

if TYPE_CHECKING:
    from wit_world.imports import stepping as wit_stepping

    from tartlet_sdk.constraint import Constraint
    from tartlet_sdk.context import Context
    from tartlet_sdk.sampler import Sampler
    from tartlet_sdk.stop import StopCondition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step has really done."""

    tokens: tuple[int, ...]
    """Tokens appended."""
    text: str
    """What they add to the text: whole characters, which may come with later tokens."""
    sampled: int | None = None
    """The token that was sampled, even if a splice has replaced it."""
    backtrack: int = 0
    """Tokens dropped, of those that were there before the step."""
    text_backtrack: int = 0
    """Characters to drop from the text so far, before `text`."""
    logprobs: TokenLogprobs | None = None
    """At the sampled token, if they were asked for."""
    finish_reason: str | None = None
    """Why this was the last step, if it was: `eos`, `stop-token`, `stop-string`, `length` or `complete`."""
    usage: Usage | None = None
    """Set in the last step."""


class Steps:
    """A stepped generation, made by `Context.steps`. Use it as `async with context.steps(...) as steps`.

    The model computes while the program decides: what it does between two `next` costs nothing up to the time of a
    forward pass, and never delays anybody else. Its context is busy until the block is left; `fork` works meanwhile.
    """

    def __init__(
        self,
        context: Context,
        sampler: Sampler,
        stop: StopCondition,
        logprobs: int | None,
        constraint: Constraint | None,
        mask: Mask | None,
    ) -> None:
        self.context = context
        """What is generated on."""
        self.text = ""
        """The text of the tokens so far: whole characters, without special tokens and without the stop string."""
        self.tokens: list[int] = []
        """The tokens so far, of this generation: not those that the context held before."""
        self.finish_reason: str | None = None
        """Why it has ended, if it has."""
        self._start = sampler, stop, logprobs, mask
        self._constraint = constraint
        self._handle: wit_stepping.Steps | None = None
        self._ready = 0  # the handle's event
        self._is_child = False
        self._is_waited_for = False  # a task is in `next`, `force` or `backtrack`
        self._is_left = False  # a step was answered, and its outcome has not been taken in

    async def __aenter__(self) -> Steps:
        if self._is_child:
            return self
        if self._handle is not None:
            raise Unavailable("these steps have begun already", call="Context.steps")
        sampler, stop, logprobs, mask = self._start
        if self._constraint is None:
            self._begin(sampler, stop, logprobs, None, mask)
        else:
            with await self._constraint.compile(self.context._model) as constraint:
                self._begin(sampler, stop, logprobs, constraint.id(), mask)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def next(
        self,
        *,
        allow: Iterable[int] | None = None,
        mask: Mask | None = None,
        bias: Mapping[int, float] | None = None,
        boost: Mapping[Mask, float] | None = None,
        temperature: float | None = None,
        splices: Iterable[Splice] = (),
    ) -> Outcome:
        """Sample a token, and wait for what has become of it. All that is given here holds for this step alone.

        Args:
            allow: Only these tokens.
            mask: Only tokens in this mask. Everything that restricts holds together.
            bias: Added to the logits of single tokens.
            boost: Added to the logits of all tokens of a mask; up to four masks.
            temperature: Instead of the sampler's.
            splices: The first whose condition holds is carried out.

        Raises:
            InvalidArgument: An argument is out of its range, nothing is left to be sampled, or more is to be dropped
                than there is. Nothing has changed, and the steps go on.
            DeadlineExceeded: The program did not answer for longer than the run's limit `max_step_ms`.
        """
        is_plain = allow is None and mask is None and bias is None and boost is None and temperature is None
        if is_plain and splices == ():
            return await self._answer(plain_answer(), NEXT)
        given = answer(allow=allow, mask=mask, bias=bias, boost=boost, temperature=temperature, splices=splices)
        return await self._answer(given, NEXT)

    async def force(self, what: str | Iterable[int]) -> Outcome:
        """Append a text or tokens, without sampling. What is forced in a row is computed together."""
        return await self._replace(0, what, "Steps.force")

    async def backtrack(self, num_tokens: int, then: str | Iterable[int] = ()) -> Outcome:
        """Drop the last tokens, also of what the context held before, then append a text or tokens."""
        name = "Steps.backtrack"
        return await self._replace(checks.whole(num_tokens, "num_tokens", name), then, name)

    def fork(self, *, seed: int | None = None) -> Steps:
        """Fork context and steps between two steps. The child has sampled, and counted, what its parent has.

        Both may sample at once, each by its own `next`: they share what has been computed. The child's context is
        `child.context`. Stop it with `stop`, or use it as `async with`.

        Args:
            seed: The child's from here on; without one, the run draws it.
        """
        handle = self._require_handle("Steps.fork")
        if self._is_left:
            hint = "Wait for its task; if that was cancelled, `await steps.backtrack(0)` takes in what it has done."
            raise Unavailable("a step is being carried out", hint=hint, call="Steps.fork")
        if seed is not None:
            checks.whole(seed, "seed", "Steps.fork", 0, (1 << 64) - 1)
        context, steps = call("Steps.fork", handle.fork, seed)
        child = Steps(type(self.context)(context, self.context._model), *self._start[:3], None, None)
        child.text, child.tokens, child._is_child = self.text, self.tokens.copy(), True
        child._handle, child._ready = steps, steps.ready()
        return child

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for something else, such as a variable or another branch: that time is not counted as lateness."""
        self._require_handle("Steps.wait").hold()
        return await awaitable

    def stop(self) -> None:
        """End it. The tokens stay in the context, which is free again. No effect if it has ended."""
        handle, self._handle = self._handle, None
        if handle is not None:
            event_loop.forget(self._ready)
            handle.stop()
            handle.__exit__(None, None, None)

    def __repr__(self) -> str:
        return f"<Steps, {len(self.tokens):,} tokens>"

    def _begin(
        self,
        sampler: Sampler,
        stop: StopCondition,
        logprobs: int | None,
        constraint_id: int | None,
        mask: Mask | None,
    ) -> None:
        options = wit.stepping.Options(logprobs, constraint_id, mask_id(mask, "Context.steps"))
        arguments = self.context._handle("steps"), sampler.to_wit(), stop.to_wit(), options
        self._handle = call("Context.steps", wit.stepping.start, *arguments)
        self._ready = self._handle.ready()

    async def _replace(self, count: int, what: str | Iterable[int], name: str) -> Outcome:
        """Drop `count` tokens, then append a text or tokens; `name` is the call's."""
        tokens = self._tokens_of(what, name)
        splices = [wit.stepping.Splice([], count, tokens)] if count or tokens else []
        return await self._answer(wit.stepping.Answer(False, None, None, [], [], None, splices), name)

    async def _answer(self, answer: wit_stepping.Answer, name: str) -> Outcome:
        """Answer, wait for the outcome, and take it in; `name` is the call's."""
        handle = self._require_handle(name)
        if self._is_waited_for:
            hint = "Only one task at a time can go on with them: wait for it, or give each a fork."
            raise Unavailable("another task waits for a step of these steps", hint=hint, call=name)
        self._is_waited_for = True
        try:
            if self._is_left:
                await self._catch_up(name)
            if event_loop.is_alone():
                return self._take_in(call(name, handle.next, answer))
            call(name, handle.answer, answer)
            self._is_left = True
            await event_loop.wait(self._ready)
            handle = self._require_handle(name)
            self._is_left = False
            return self._take_in(call(name, handle.outcome))
        finally:
            self._is_waited_for = False

    async def _catch_up(self, name: str) -> None:
        """Take in what a step has done whose task was cancelled: it was carried out all the same, or refused."""
        await event_loop.wait(self._ready)
        handle = self._require_handle(name)
        self._is_left = False
        with contextlib.suppress(TartletError):  # if it was refused, whoever has asked for that is gone
            self._take_in(call(name, handle.outcome))

    def _take_in(self, outcome: wit_stepping.Outcome) -> Outcome:
        """Keep count of tokens and text."""
        if outcome.backtrack:
            del self.tokens[max(0, len(self.tokens) - outcome.backtrack) :]
        if outcome.text_backtrack:
            self.text = self.text[: len(self.text) - outcome.text_backtrack]
        self.tokens += outcome.tokens
        self.text += outcome.text
        finish, logprobs = outcome.finish, outcome.log_probabilities
        if finish is not None:
            self.finish_reason = kebab(finish.reason.name)
        return Outcome(
            tokens=tuple(outcome.tokens),
            text=outcome.text,
            sampled=outcome.sampled,
            backtrack=outcome.backtrack,
            text_backtrack=outcome.text_backtrack,
            logprobs=None if logprobs is None else TokenLogprobs.of(logprobs),
            finish_reason=self.finish_reason,
            usage=None if finish is None else Usage.of(finish.usage),
        )

    def _tokens_of(self, what: str | Iterable[int], name: str) -> list[int]:
        if isinstance(what, str):
            return call(name, self.context._model.tokenize, checks.text(what, "text", name))
        return checks.tokens(what, "tokens", name)

    def _require_handle(self, name: str) -> wit_stepping.Steps:
        if self._handle is None:
            hint = "Use them inside `async with context.steps(...) as steps`."
            raise Unavailable("the steps have not begun, or were stopped", hint=hint, call=name)
        return self._handle
