"""Generations: awaited whole, or iterated chunk by chunk."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Coroutine, Generator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tartlet_sdk import event_loop, wit
from tartlet_sdk.draft import Chunk, Draft, TokenLogprobs, Usage
from tartlet_sdk.errors import Cancelled, NotAwaited, Unavailable
from tartlet_sdk.host_call import call, kebab
from tartlet_sdk.mask import mask_id

if TYPE_CHECKING:
    from wit_world.imports import generation as wit_generation

    from tartlet_sdk.constraint import Constraint
    from tartlet_sdk.context import Context
    from tartlet_sdk.mask import Mask
    from tartlet_sdk.sampler import Sampler
    from tartlet_sdk.speculation import Speculation
    from tartlet_sdk.stop import StopCondition

CALL = "Context.generate"
WHOLE = ("complete", "eos")
"""Finish reasons after which the text is one that the constraint describes."""
DRAFT_FIELDS = tuple(field.name for field in fields(Draft))


class Generation(Coroutine[Any, Any, Draft], AsyncIterator[Chunk]):
    """One generation, made by `Context.generate`. It starts when it is awaited or iterated.

    `await generation` gives the `Draft`; `async for chunk in generation` gives `Chunk`s as they come, and
    `generation.result` the draft afterwards. It is a coroutine, so `asyncio.create_task` takes it as it is. When the
    task that waits for it is cancelled, or nobody refers to it any more, the generation is cancelled too.
    """

    def __init__(
        self,
        context: Context,
        sampler: Sampler,
        stop: StopCondition,
        logprobs: int | None,
        chunk_interval: float,
        *,
        constraint: Constraint | None = None,
        speculation: Speculation | None = None,
        mask: Mask | None = None,
        depth: int = 2,
    ) -> None:
        """Remember where the author made it, so many frames up."""
        self._context = context
        self._sampler = sampler
        self._stop = stop
        self._logprobs = logprobs
        self._interval_ns = int(chunk_interval * 1e9)
        caller = sys._getframe(depth)  # of Context.generate
        self._made_at = caller.f_code.co_filename, caller.f_lineno
        self._handle: wit_generation.Generation | None = None
        self._ready: int = 0  # the handle's event
        self._has_started = False
        self._compiling: asyncio.Event | None = None  # set when the constraint is compiled
        self._constraint = constraint
        self._speculation = speculation
        self._mask = mask
        self._is_cancelled = False
        self._chunks: list[Chunk] = []
        self._result: Draft | None = None
        self._coroutine: Coroutine[Any, Any, Draft] | None = None

    @property
    def result(self) -> Draft:
        """The whole draft. Raises `Unavailable` before the generation has ended."""
        if self._result is None:
            raise Unavailable(
                "the generation has not ended yet", hint="Await it, or iterate it to its end.", call="Generation.result"
            )
        return self._result

    def __repr__(self) -> str:
        if self._result is not None:
            return "<Generation, ended>"
        if not self._has_started:
            return "<Generation, not started>"
        return "<Generation, running>" if self._handle is not None else "<Generation, given up>"

    if not TYPE_CHECKING:  # type checkers know that these attributes are a draft's

        def __getattr__(self, name: str) -> Any:
            """Say what is missing to who has forgotten the `await`."""
            if name in DRAFT_FIELDS:
                raise NotAwaited(f"a Generation has no {name}, its Draft has", hint="Write `draft = await generation`.")
            raise AttributeError(f"a Generation has no attribute {name!r}")

    def cancel(self) -> None:
        """End it at the next step, with what it has: its finish reason is then `cancelled`."""
        self._is_cancelled = True
        if self._handle is not None:
            self._handle.cancel()

    def __await__(self) -> Generator[Any, Any, Draft]:
        return self._whole().__await__()

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> Chunk:
        await self._start(streaming=True)
        while self._result is None:
            chunk = await self._advance()
            if chunk.text or chunk.tokens:
                return chunk
        raise StopAsyncIteration

    # What makes it a coroutine: `await` and `async for` do not need these, tasks do.

    def send(self, value: Any) -> Any:
        """Run until the next wait; for the event loop."""
        if self._coroutine is None:
            self._coroutine = self._whole()
        return self._coroutine.send(value)

    def throw(self, error: Any, value: Any = None, trace: Any = None, /) -> Any:
        """Raise an exception where it waits; for the event loop."""
        if self._coroutine is None:
            self._coroutine = self._whole()
        return self._coroutine.throw(error if value is None else value)

    def close(self) -> None:
        """Drop it, whatever its state."""
        self._has_started = True
        if self._coroutine is not None:
            self._coroutine.close()
        self._drop()

    def __del__(self) -> None:
        if not self._has_started:
            message = "a generation was never awaited or iterated, so it never started"
            warnings.warn_explicit(message, RuntimeWarning, *self._made_at)

    async def _whole(self) -> Draft:
        await self._start(streaming=False)
        while self._result is None:
            await self._advance()
        return self._result

    async def _start(self, *, streaming: bool) -> None:
        """Start it, unless it has started. Raises `Cancelled` if it was given up before its end."""
        if self._compiling is not None:  # another task starts it
            await self._compiling.wait()
        if self._has_started:
            self._require_not_given_up()
            return
        self._has_started = True
        if self._constraint is None:
            self._begin(streaming, None)
            return
        self._compiling = asyncio.Event()
        try:
            with await self._constraint.compile(self._context._model) as constraint:
                self._begin(streaming, constraint.id())
        finally:
            self._compiling.set()
            self._compiling = None

    def _begin(self, streaming: bool, constraint_id: int | None) -> None:
        """Let the host generate."""
        speculation = None if self._speculation is None else self._speculation.to_wit(self._context._model)
        options = wit.generation.Options(
            streaming=streaming,
            chunk_interval_ns=self._interval_ns,
            log_probabilities=self._logprobs,
            constraint=constraint_id,
            speculation=speculation,
            mask=mask_id(self._mask, CALL),
        )
        arguments = self._context._handle("generate"), self._sampler.to_wit(), self._stop.to_wit(), options
        self._handle = call(CALL, wit.generation.generate, *arguments)
        self._ready = self._handle.ready()
        if self._is_cancelled:
            self._handle.cancel()

    async def _advance(self) -> Chunk:
        """Wait for what comes next, and keep it. If this is given up or fails, so is the generation."""
        try:
            if self._handle is not None and event_loop.is_alone():
                read = call(CALL, self._handle.next)
            else:
                await event_loop.wait(self._ready)
                if self._handle is None:  # another task has read the end meanwhile, or given it up
                    self._require_not_given_up()
                    return Chunk("", ())
                read = call(CALL, self._handle.read)
        except BaseException:
            self._drop()
            raise
        logprobs = tuple(TokenLogprobs.of(position) for position in read.log_probabilities)
        chunk = Chunk(read.text, tuple(read.tokens), logprobs)
        self._chunks.append(chunk)
        if read.finish is not None:
            self._result = self._draft(read.finish)
            self._drop()
        return chunk

    def _require_not_given_up(self) -> None:
        if self._handle is None and self._result is None:
            raise Cancelled("the generation was given up before its end", call=CALL)

    def _draft(self, finish: wit_generation.Finish) -> Draft:
        text, reason = "".join(chunk.text for chunk in self._chunks), kebab(finish.reason.name)
        return Draft(
            text=text,
            tokens=tuple(token for chunk in self._chunks for token in chunk.tokens),
            finish_reason=reason,
            stop_string=finish.stop_string,
            usage=Usage.of(finish.usage),
            logprobs=tuple(position for chunk in self._chunks for position in chunk.logprobs),
            value=self._constraint.parse(text) if self._constraint is not None and reason in WHOLE else None,
        )

    def _drop(self) -> None:
        """Give the handle back, which ends the generation if it still runs."""
        handle, self._handle = self._handle, None
        if handle is not None:
            event_loop.forget(self._ready)  # other tasks may wait for it, too
            handle.__exit__(None, None, None)
