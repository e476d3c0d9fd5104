"""An engine client that plays a script, for tests of inferlets and of the host.

It keeps contexts, pages, limits and stop conditions as a real engine does; only the model is missing.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from tartlet.testing.byte_text import END_OF_TURN, VOCABULARY_SIZE, ByteText
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_pages import FakeContext, FakePages, PagesExhaustedError
from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    CloseRun,
    Command,
    CreateContext,
    Done,
    EngineError,
    EngineStats,
    EngineStopped,
    ErrorCode,
    Event,
    Failed,
    Finished,
    FinishReason,
    FlushContext,
    ForkContext,
    FreeContext,
    Generate,
    LimitReached,
    ModelInfo,
    OpenRun,
    TruncateContext,
    Usage,
)

_LAST_MESSAGE = re.compile(r".*<\|im_start\|>user\n(.*?)<\|im_end\|>", re.DOTALL)
_NO_PAGE = EngineError(ErrorCode.KV_EXHAUSTED, "no page is free")


def echo(prompt: str) -> str:
    """The last user's message in a chat, or the whole text of the context: what the fake engine answers by default."""
    match = _LAST_MESSAGE.match(prompt)
    return match[1] if match else prompt


class FakeEngine:
    """Implements `tartlet_engine.api.EngineClient` on a thread of its own, without a model.

    Args:
        replies: The texts of the generations in the order in which they start (then it echoes), or a function from
            the context's text to the reply. A reply ends with the eos token, unless a stop condition comes first.
        token_delay_s: Seconds that each step takes.
        num_pages: Pages of the KV pool.
        page_size: Tokens of a page.
        context_len: The greatest length of a context, in tokens.
        model_name: The name of its only model.
    """

    def __init__(
        self,
        replies: Iterable[str] | Callable[[str], str] = (),
        *,
        token_delay_s: float = 0.0,
        num_pages: int = 4096,
        page_size: int = 16,
        context_len: int = 4096,
        model_name: str = "fake",
    ) -> None:
        self._replies = replies if callable(replies) else None
        self._script = iter(()) if callable(replies) else iter(replies)
        self._delay_s = token_delay_s
        self._info = ModelInfo(
            name=model_name,
            architecture="FakeForCausalLM",
            context_len=context_len,
            vocabulary_size=VOCABULARY_SIZE,
            page_size=page_size,
            num_pages=num_pages,
            eos_token_ids=(END_OF_TURN,),
            features=("chat",),
            dtype="float32",
            backend="fake",
        )
        self._text = ByteText()
        self._pages = FakePages(num_pages, page_size)
        self._runs: dict[int, OpenRun] = {}
        self._num_generated: dict[int, int] = {}  # by run
        self._contexts: dict[int, FakeContext] = {}
        self._generations: dict[int, FakeGeneration] = {}
        self._queue: list[Command] = []
        self._events: list[Event] = []
        self._failures: list[EngineError] = []
        self._totals = {"steps": 0, "prefill_tokens": 0, "generated_tokens": 0}
        self._stopped: EngineError | None = None
        self._is_closed = False
        self._listener: Callable[[list[Event]], None] = lambda events: None
        self._lock = threading.Condition()  # guards all of the above
        self._thread = threading.Thread(target=self._work, name="tartlet-fake-engine", daemon=True)
        self._thread.start()

    # ---- For tests ----

    def fail_next(self, error: EngineError) -> None:
        """Make the next generation that starts fail with `error`."""
        with self._lock:
            self._failures.append(error)

    def crash(self, message: str = "the engine was stopped by the test") -> None:
        """Play an engine that dies: `EngineStopped`, and no answer to anything any more."""
        with self._lock:
            self._stopped = EngineError(ErrorCode.UNAVAILABLE, message)
            self._lock.notify()

    # ---- EngineClient ----

    @property
    def models(self) -> Mapping[str, ModelInfo]:
        """The one model, by its name."""
        return {self._info.name: self._info}

    def text(self, model: str) -> ByteText:
        """The text side. Raises KeyError for another model's name."""
        if model != self._info.name:
            raise KeyError(model)
        return self._text

    def submit(self, commands: Sequence[Command]) -> None:
        """Queue commands for the next step, in order."""
        with self._lock:
            self._queue.extend(commands)
            self._lock.notify()

    def listen(self, listener: Callable[[list[Event]], None]) -> None:
        """Set who hears of events."""
        with self._lock:
            self._listener = listener

    def stats(self) -> EngineStats:
        """The counters as of the last step."""
        with self._lock:
            num_free = self._pages.num_free
            return EngineStats(
                pages_total=self._info.num_pages,
                pages_free=num_free,
                pages_cached=0,
                pages_held=self._info.num_pages - num_free,
                runs=len(self._runs),
                contexts=len(self._contexts),
                running=len(self._generations),
                waiting=0,
                **self._totals,
            )

    def check_integrity(self) -> None:
        """Raise AssertionError unless pages, contexts and generations add up. Carries out what is queued first."""
        with self._lock:
            self._carry_out()
            self._pages.check(self._contexts.values())
            assert all(context.run_id in self._runs for context in self._contexts.values())
            assert all(g.context.context_id in self._contexts for g in self._generations.values())

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._lock:
            self._is_closed = True
            self._lock.notify()
        self._thread.join()

    # ---- Steps ----

    def _work(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(self._has_work)
                if self._is_closed:
                    return
                if self._stopped:
                    events: list[Event] = [EngineStopped(self._stopped)]
                else:
                    self._carry_out()
                    self._advance()
                    events, self._events = self._events, []
                listener = self._listener
            if events:
                listener(events)
            if self._stopped:
                return
            time.sleep(self._delay_s)

    def _has_work(self) -> bool:
        return bool(self._queue or self._events or self._generations or self._is_closed or self._stopped)

    def _carry_out(self) -> None:
        queue, self._queue = self._queue, []
        for command in queue:
            self._execute(command)

    def _advance(self) -> None:
        self._totals["steps"] += 1
        for generation in list(self._generations.values()):
            if generation.command.generation_id in self._generations:  # not ended by another's limit
                self._advance_one(generation)

    def _advance_one(self, generation: FakeGeneration) -> None:
        context = generation.context
        reason: FinishReason | None = FinishReason.CANCELLED
        if not generation.is_cancelled:
            chunk, reason = generation.step()
            self._events.append(chunk)
            self._totals["generated_tokens"] += 1
            self._num_generated[context.run_id] += 1
            if reason is None and not self._compute(context, generation.command.generation_id):
                del self._generations[generation.command.generation_id]
                return
            if self._is_over_limit(context.run_id):
                return
        if reason is not None:
            del self._generations[generation.command.generation_id]
            self._events.append(
                Finished(generation.command.generation_id, reason, self._usage(generation), generation.stop_string)
            )

    def _usage(self, generation: FakeGeneration) -> Usage:
        return Usage(
            prompt_tokens=generation.num_prompt,
            cached_tokens=generation.num_cached,
            generated_tokens=generation.num_generated,
            pages=len(generation.context.pages),
            shared_pages=self._pages.num_shared(generation.context),
            first_token_ns=generation.first_token_ns,
            total_ns=generation.elapsed_ns,
        )

    def _prefill(self, context: FakeContext, failed_id: int) -> bool:
        """Compute what was appended, or fails the operation of that id."""
        num_before = context.num_computed
        is_done = self._compute(context, failed_id)
        self._totals["prefill_tokens"] += context.num_computed - num_before
        return is_done

    def _compute(self, context: FakeContext, failed_id: int) -> bool:
        """Give pages to all of the context's tokens, or fails the operation of that id."""
        try:
            self._pages.compute(context)
        except PagesExhaustedError:
            self._events.append(Failed(failed_id, _NO_PAGE))
            return False
        return True

    def _is_over_limit(self, run_id: int) -> bool:
        """Stop a run that has used more tokens or pages than it may."""
        run = self._runs[run_id]
        pages = {page for c in self._contexts.values() if c.run_id == run_id for page in c.pages}
        for limit, used, allowed in (
            ("generated_tokens", self._num_generated[run_id], run.max_generated_tokens),
            ("kv_pages", len(pages), run.max_pages),
        ):
            if allowed is not None and used > allowed:
                self._generations = {i: g for i, g in self._generations.items() if g.context.run_id != run_id}
                self._events.append(LimitReached(run_id, limit, used, allowed))
                return True
        return False

    # ---- Commands ----

    def _execute(self, command: Command) -> None:
        match command:
            case OpenRun():
                self._runs[command.run_id] = command
                self._num_generated[command.run_id] = 0
            case CloseRun(run_id):
                for context in [c for c in self._contexts.values() if c.run_id == run_id]:
                    self._free(context.context_id)
                del self._runs[run_id], self._num_generated[run_id]
            case CreateContext(context_id, run_id):
                self._contexts[context_id] = FakeContext(context_id, run_id)
            case AppendTokens(context_id, token_ids):
                self._contexts[context_id].token_ids.extend(token_ids)
            case ForkContext(context_id, child_id, length):
                self._fork(self._contexts[context_id], child_id, length)
            case TruncateContext(context_id, length):
                self._pages.truncate(self._contexts[context_id], length)
            case FlushContext(context_id, operation_id):
                self._flush(self._contexts[context_id], operation_id)
            case FreeContext(context_id):
                self._free(context_id)
            case Generate():
                self._start(command)
            case CancelGeneration(generation_id):
                if generation_id in self._generations:
                    self._generations[generation_id].is_cancelled = True

    def _fork(self, parent: FakeContext, child_id: int, length: int) -> None:
        """Compute the parent first, so that its forks share all of its pages."""
        child = self._contexts[child_id] = FakeContext(child_id, parent.run_id)
        if all(g.context is not parent for g in self._generations.values()):
            self._prefill(parent, child_id)
        self._pages.fork(parent, child, length)

    def _flush(self, context: FakeContext, operation_id: int) -> None:
        if self._prefill(context, operation_id) and not self._is_over_limit(context.run_id):
            self._events.append(Done(operation_id))

    def _start(self, command: Generate) -> None:
        context = self._contexts[command.context_id]
        if self._failures:
            self._events.append(Failed(command.generation_id, self._failures.pop(0)))
            return
        num_cached = context.num_computed
        if not self._prefill(context, command.generation_id) or self._is_over_limit(context.run_id):
            return
        prompt = self._text.decode(context.token_ids)
        reply = self._replies(prompt) if self._replies else next(self._script, None)
        self._generations[command.generation_id] = FakeGeneration(
            command, context, echo(prompt) if reply is None else reply, self._info.context_len, num_cached
        )

    def _free(self, context_id: int) -> None:
        context = self._contexts.pop(context_id)
        self._pages.truncate(context, 0)
        self._generations = {i: g for i, g in self._generations.items() if g.context is not context}
