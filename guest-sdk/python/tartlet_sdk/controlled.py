"""Generations that another program, a controller, steers: awaited whole, or iterated chunk by chunk."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tartlet_sdk import event_loop, wit
from tartlet_sdk.draft import Chunk, Draft, TokenLogprobs, Usage
from tartlet_sdk.generation import CALL, WHOLE, Generation
from tartlet_sdk.host_call import call, kebab
from tartlet_sdk.mask import mask_id

if TYPE_CHECKING:
    from wit_world.imports import controllers as wit_controllers
    from wit_world.imports import generation as wit_generation


class SequenceText:
    """What one sequence has generated so far."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens: list[int] = []
        self.logprobs: list[TokenLogprobs] = []
        self.finish: wit_generation.Finish | None = None

    def add(self, chunk: wit_controllers.SequenceChunk, logprobs: tuple[TokenLogprobs, ...]) -> None:
        """Take back what the chunk takes back, and add what it adds."""
        if chunk.text_backtrack:
            self.text = self.text[: -chunk.text_backtrack]
        self.text += chunk.text
        if chunk.token_backtrack:
            del self.tokens[-chunk.token_backtrack :]
        self.tokens += chunk.tokens
        self.logprobs += logprobs
        self.finish = chunk.finish or self.finish


class ControlledGeneration(Generation):
    """One generation with a controller, made by `Context.generate`.

    As `Generation`; the draft is that of the context's own sequence, and has `sequences` for all of them. Chunks say
    whose they are, and how many characters they take back.
    """

    def __init__(self, *arguments: Any, controller: str, config: str, **options: Any) -> None:
        super().__init__(*arguments, **options, depth=3)
        self._controller = controller
        self._config = config
        self._texts: dict[int, SequenceText] = {}
        self._pending: deque[Chunk] = deque()

    async def __anext__(self) -> Chunk:
        await self._start(streaming=True)
        while not self._pending and self._result is None:
            await self._advance()
        if self._pending:
            return self._pending.popleft()
        raise StopAsyncIteration

    def _begin(self, streaming: bool, constraint_id: int | None) -> None:
        """Let the host start the controller, and generate."""
        options = wit.generation.Options(
            streaming=streaming,
            chunk_interval_ns=self._interval_ns,
            log_probabilities=self._logprobs,
            constraint=constraint_id,
            speculation=None,
            mask=mask_id(self._mask, CALL),
        )
        context = self._context._handle("generate")
        arguments = self._sampler.to_wit(), self._stop.to_wit(), options
        handle: Any = call(CALL, wit.controllers.control, context, self._controller, self._config, *arguments)
        self._handle, self._ready = handle, handle.ready()
        if self._is_cancelled:
            handle.cancel()

    async def _advance(self) -> Chunk:
        """Wait for what comes next, and keep it. If this is given up or fails, so is the generation."""
        nothing = Chunk("", ())
        try:
            await event_loop.wait(self._ready)
            if self._handle is None:  # another task has read the end meanwhile, or given it up
                self._require_not_given_up()
                return nothing
            read: Any = call(CALL, self._handle.read)
        except BaseException:
            self._drop()
            raise
        for each in read.chunks:
            logprobs = tuple(TokenLogprobs.of(position) for position in each.log_probabilities)
            self._texts.setdefault(each.sequence, SequenceText()).add(each, logprobs)
            chunk = Chunk(each.text, tuple(each.tokens), logprobs, each.sequence, each.text_backtrack)
            if chunk.text or chunk.tokens or chunk.backtrack:
                self._pending.append(chunk)
        if read.ended:
            drafts = [self._sequence_draft(text) for _, text in sorted(self._texts.items())]
            self._result = Draft(**{name: getattr(drafts[0], name) for name in OWN_FIELDS}, sequences=tuple(drafts))
            self._drop()
        return nothing

    def _sequence_draft(self, text: SequenceText) -> Draft:
        finish = text.finish
        assert finish is not None  # all have ended
        reason = kebab(finish.reason.name)
        return Draft(
            text=text.text,
            tokens=tuple(text.tokens),
            finish_reason=reason,
            stop_string=finish.stop_string,
            usage=Usage.of(finish.usage),
            logprobs=tuple(text.logprobs),
            value=self._constraint.parse(text.text) if self._constraint is not None and reason in WHOLE else None,
        )


OWN_FIELDS = tuple(name for name in Draft.__dataclass_fields__ if name != "sequences")
