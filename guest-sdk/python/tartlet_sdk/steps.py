"""Generating token by token, with the program in control."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tartlet_sdk import checks, event_loop, wit
from tartlet_sdk.draft import TokenLogprobs, Usage
from tartlet_sdk.errors import InvalidArgument, Unavailable
from tartlet_sdk.host_call import call, kebab
from tartlet_sdk.mask import Mask, mask_id

if TYPE_CHECKING:
    from wit_world.imports import stepping as wit_stepping

    from tartlet_sdk.constraint import Constraint
    from tartlet_sdk.context import Context
    from tartlet_sdk.sampler import Sampler
    from tartlet_sdk.stop import StopCondition

T = TypeVar("T")
NEXT = "Steps.next"


@dataclass(frozen=True, slots=True)
class Splice:
    """A change of what a step appends: `backtrack` tokens are dropped from the end, then `tokens` appended.

    In a step that samples, `backtrack` counts the sampled token, too: 0 keeps it, 1 replaces it, 2 also drops the one
    before it.
    """

    tokens: Iterable[int] = ()
    """Appended as they are; nobody samples them."""
    backtrack: int = 0
    """Tokens to drop."""
    when_sampled: Iterable[int] = ()
    """Holds if one of these is sampled; empty: whatever is sampled."""


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
        if not (allow or mask or bias or boost or splices) and allow is None and temperature is None:
            return await self._answer(_plain())
        return await self._answer(
            wit.stepping.Answer(
                sample=True,
                allow=None if allow is None else checks.tokens(allow, "allow", NEXT),
                mask=mask_id(mask, NEXT),
                bias=_pairs(bias),
                boosts=[(_id_of(each), checks.number(amount, "boost", NEXT)) for each, amount in (boost or {}).items()],
                temperature=None if temperature is None else checks.number(temperature, "temperature", NEXT, 0),
                splices=[_splice(each) for each in splices],
            )
        )

    async def force(self, what: str | Iterable[int]) -> Outcome:
        """Append a text or tokens, without sampling. What is forced in a row is computed together."""
        return await self.backtrack(0, then=what)

    async def backtrack(self, num_tokens: int, then: str | Iterable[int] = ()) -> Outcome:
        """Drop the last tokens, also of what the context held before, then append a text or tokens."""
        count = checks.whole(num_tokens, "num_tokens", "Steps.backtrack")
        tokens = self._tokens_of(then)
        splices = [wit.stepping.Splice([], count, tokens)] if count or tokens else []
        return await self._answer(wit.stepping.Answer(False, None, None, [], [], None, splices))

    def fork(self, *, seed: int | None = None) -> Steps:
        """Fork context and steps between two steps. The child has sampled, and counted, what its parent has.

        Both may sample at once, each by its own `next`: they share what has been computed. The child's context is
        `child.context`. Stop it with `stop`, or use it as `async with`.

        Args:
            seed: The child's from here on; without one, the run draws it.
        """
        handle = self._require_handle("Steps.fork")
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

    async def _answer(self, answer: wit_stepping.Answer) -> Outcome:
        """Answer, wait for the outcome, and keep count of tokens and text."""
        handle = self._require_handle(NEXT)
        if event_loop.is_alone():
            outcome = call(NEXT, handle.next, answer)
        else:
            call(NEXT, handle.answer, answer)
            await event_loop.wait(self._ready)
            outcome = call(NEXT, self._require_handle(NEXT).outcome)
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

    def _tokens_of(self, what: str | Iterable[int]) -> list[int]:
        if isinstance(what, str):
            return call("Steps.force", self.context._model.tokenize, checks.text(what, "text", "Steps.force"))
        return checks.tokens(what, "tokens", "Steps.force")

    def _require_handle(self, name: str) -> wit_stepping.Steps:
        if self._handle is None:
            hint = "Use them inside `async with context.steps(...) as steps`."
            raise Unavailable("the steps have not begun, or were stopped", hint=hint, call=name)
        return self._handle


@functools.cache
def _plain() -> Any:
    """The answer that only says to go on."""
    return wit.stepping.Answer(True, None, None, [], [], None, [])


def _pairs(bias: Mapping[int, float] | None) -> list[tuple[int, float]]:
    if not bias:
        return []
    return [
        (checks.whole(token, "a token of bias", NEXT), checks.number(amount, f"bias[{token}]", NEXT))
        for token, amount in bias.items()
    ]


def _id_of(mask: Mask) -> int:
    number = mask_id(mask, NEXT)
    assert number is not None
    return number


def _splice(splice: Splice) -> wit_stepping.Splice:
    if not isinstance(splice, Splice):
        raise InvalidArgument(f"splices must be of Splice, not {type(splice).__name__}", call=NEXT)
    return wit.stepping.Splice(
        checks.tokens(splice.when_sampled, "when_sampled", NEXT),
        checks.whole(splice.backtrack, "backtrack", NEXT),
        checks.tokens(splice.tokens, "tokens of a splice", NEXT),
    )
