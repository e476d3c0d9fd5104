"""What the fake engine does with commands, step by step. No threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tartlet.testing.byte_text import ByteText
from tartlet.testing.fake_constraints import FakeConstraints
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_pages import FakeContext, FakePages, PagesExhaustedError
from tartlet.testing.fake_saved import FakeSavedContexts
from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    CloseRun,
    Command,
    CompileConstraint,
    CreateContext,
    DeleteSaved,
    Done,
    EngineError,
    EngineStats,
    ErrorCode,
    Event,
    EvictContext,
    Failed,
    Finished,
    FinishReason,
    FlushContext,
    ForkContext,
    FreeConstraint,
    FreeContext,
    Generate,
    LimitReached,
    ListSaved,
    ModelInfo,
    Opened,
    OpenRun,
    OpenSaved,
    PublishPrefix,
    SaveContext,
    SavedList,
    TruncateContext,
    UnpublishPrefix,
    Usage,
)

_NO_PAGE = EngineError(ErrorCode.KV_EXHAUSTED, "no page is free")


@dataclass(slots=True)
class _Totals:
    """Counters that only grow."""

    steps: int = 0
    prefill_tokens: int = 0
    generated_tokens: int = 0


class FakeCore:
    """Runs, contexts, pages and generations. Not thread-safe.

    Args:
        info: The model's facts.
        reply: The text that follows a prompt.
    """

    def __init__(self, info: ModelInfo, reply: Callable[[str], str]) -> None:
        self.failures: list[EngineError] = []
        self._info = info
        self._reply = reply
        self._text = ByteText()
        self._pages = FakePages(info.num_pages, info.page_size)
        self._runs: dict[int, OpenRun] = {}
        self._num_generated: dict[int, int] = {}  # by run
        self._contexts: dict[int, FakeContext] = {}
        self._generations: dict[int, FakeGeneration] = {}
        self._events: list[Event] = []
        self._totals = _Totals()
        self._saved = FakeSavedContexts(info.name)
        self._constraints = FakeConstraints()

    @property
    def has_work(self) -> bool:
        """Whether a step would do something."""
        return bool(self._generations or self._events)

    def stats(self) -> EngineStats:
        """Give the counters."""
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
            steps=self._totals.steps,
            prefill_tokens=self._totals.prefill_tokens,
            generated_tokens=self._totals.generated_tokens,
            lookup_tokens=0,
            found_tokens=0,
            recomputed_tokens=0,
            preemptions=0,
            pages_swapped=0,
            swapped_bytes=0,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError unless pages, contexts and generations add up."""
        self._pages.check(self._contexts.values())
        self._constraints.check(self._runs)
        assert all(context.run_id in self._runs for context in self._contexts.values())
        assert all(g.context.context_id in self._contexts for g in self._generations.values())

    def step(self) -> list[Event]:
        """Give every generation a token; the events since the last step."""
        self._totals.steps += 1
        for generation in list(self._generations.values()):
            if generation.command.generation_id in self._generations:  # not ended by another's limit
                self._advance(generation)
        events, self._events = self._events, []
        return events

    def execute(self, command: Command) -> None:
        """Carry out a command."""
        match command:
            case OpenRun():
                self._runs[command.run_id] = command
                self._num_generated[command.run_id] = 0
            case CloseRun(run_id):
                for context in [c for c in self._contexts.values() if c.run_id == run_id]:
                    self._free(context.context_id)
                del self._runs[run_id], self._num_generated[run_id]
                self._constraints.close_run(run_id)
            case CreateContext(context_id, run_id, adapter):
                self._contexts[context_id] = FakeContext(context_id, run_id, adapter=adapter)
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
            case CompileConstraint(constraint_id, run_id, kind, text):
                self._answer(constraint_id, self._constraints.compile(constraint_id, run_id, kind, text))
            case FreeConstraint(constraint_id):
                self._constraints.free(constraint_id)
            case Generate():
                self._start(command)
            case PublishPrefix(prefix_id):
                self._events.append(Done(prefix_id))  # there is no prefix cache, but nothing depends on one
            case UnpublishPrefix():
                pass
            case CancelGeneration(generation_id):
                if generation_id in self._generations:
                    self._generations[generation_id].is_cancelled = True
            case EvictContext(context_id, operation_id, start, end):
                self._evict(self._contexts[context_id], operation_id, start, end)
            case SaveContext():
                self._save(command)
            case OpenSaved():
                self._open(command)
            case ListSaved(operation_id, run_id):
                self._events.append(SavedList(operation_id, self._saved.of_tenant(self._runs[run_id].tenant)))
            case DeleteSaved(operation_id, run_id, name):
                self._answer(operation_id, self._saved.delete(self._runs[run_id].tenant, name))

    def _advance(self, generation: FakeGeneration) -> None:
        context = generation.context
        reason: FinishReason | None = FinishReason.CANCELLED
        if not generation.is_cancelled:
            chunk, reason = generation.step()
            self._events.append(chunk)
            self._totals.generated_tokens += 1
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
        """Compute what was appended, or fail the operation of that id: at once if it can never fit."""
        allowed = min(self._info.num_pages, self._runs[context.run_id].max_pages or self._info.num_pages)
        needed = -(-len(context.token_ids) // self._info.page_size)
        if needed > allowed:
            message = f"a context of {len(context.token_ids):,} tokens needs {needed:,} pages; {allowed:,} are allowed"
            self._events.append(Failed(failed_id, EngineError(ErrorCode.KV_EXHAUSTED, message)))
            return False
        num_before = context.num_computed
        is_done = self._compute(context, failed_id)
        self._totals.prefill_tokens += context.num_computed - num_before
        return is_done

    def _compute(self, context: FakeContext, failed_id: int) -> bool:
        """Give pages to all of the context's tokens, or fail the operation of that id."""
        try:
            self._pages.compute(context)
        except PagesExhaustedError:
            self._events.append(Failed(failed_id, _NO_PAGE))
            return False
        return True

    def _is_over_limit(self, run_id: int) -> bool:
        """Stop a run that has used more tokens or pages than it may."""
        run = self._runs[run_id]
        num_pages = 0
        if run.max_pages is not None:
            num_pages = len({page for c in self._contexts.values() if c.run_id == run_id for page in c.pages})
        for limit, used, allowed in (
            ("generated_tokens", self._num_generated[run_id], run.max_generated_tokens),
            ("kv_pages", num_pages, run.max_pages),
        ):
            if allowed is not None and used > allowed:
                self._generations = {i: g for i, g in self._generations.items() if g.context.run_id != run_id}
                self._events.append(LimitReached(run_id, limit, used, allowed))
                return True
        return False

    def _fork(self, parent: FakeContext, child_id: int, length: int) -> None:
        """Compute the parent first, so that its forks share all of its pages."""
        child = self._contexts[child_id] = FakeContext(child_id, parent.run_id, adapter=parent.adapter)
        if all(g.context is not parent for g in self._generations.values()):
            self._prefill(parent, child_id)
        self._pages.fork(parent, child, length)

    def _flush(self, context: FakeContext, operation_id: int) -> None:
        if self._prefill(context, operation_id) and not self._is_over_limit(context.run_id):
            self._events.append(Done(operation_id))

    def _evict(self, context: FakeContext, operation_id: int, start: int, end: int) -> None:
        if self._prefill(context, operation_id) and not self._is_over_limit(context.run_id):
            self._pages.evict(context, start, end)
            self._events.append(Done(operation_id))

    def _save(self, command: SaveContext) -> None:
        context = self._contexts[command.context_id]
        if self._prefill(context, command.operation_id) and not self._is_over_limit(context.run_id):
            tenant = self._runs[context.run_id].tenant
            self._answer(command.operation_id, self._saved.put(tenant, command, context.token_ids, context.adapter))

    def _open(self, command: OpenSaved) -> None:
        """Give an opened context its pages without counting a prefill."""
        saved = self._saved.get(self._runs[command.run_id].tenant, command.name)
        if isinstance(saved, EngineError):
            self._answer(command.operation_id, saved)
            return
        context = FakeContext(command.context_id, command.run_id, list(saved.token_ids), adapter=saved.adapter)
        if self._compute(context, command.operation_id):
            self._contexts[command.context_id] = context
            if not self._is_over_limit(command.run_id):
                self._events.append(Opened(command.operation_id, saved.token_ids, saved.host_state))

    def _answer(self, operation_id: int, error: EngineError | None) -> None:
        self._events.append(Done(operation_id) if error is None else Failed(operation_id, error))

    def _start(self, command: Generate) -> None:
        context = self._contexts[command.context_id]
        if self.failures:
            self._events.append(Failed(command.generation_id, self.failures.pop(0)))
            return
        if (number := command.constraint_id) is not None and not self._constraints.is_of(number, context.run_id):
            error = EngineError(ErrorCode.NOT_FOUND, f"the run has no constraint {number}")
            self._events.append(Failed(command.generation_id, error))
            return
        num_cached = context.num_computed
        if not self._prefill(context, command.generation_id) or self._is_over_limit(context.run_id):
            return
        try:
            reply = self._reply(self._text.decode(context.token_ids))
            if not isinstance(reply, str):
                raise TypeError(f"a reply must be a str, got {reply!r}")
        except Exception as error:  # the test's own code: whoever waits for the reply hears of it
            message = f"the reply of the FakeEngine failed: {type(error).__name__}: {error}"
            self._events.append(Failed(command.generation_id, EngineError(ErrorCode.INTERNAL, message)))
            return
        self._generations[command.generation_id] = FakeGeneration(
            command, context, reply, self._info.context_len, num_cached
        )

    def _free(self, context_id: int) -> None:
        context = self._contexts.pop(context_id, None)
        if context is None:  # it could not be opened
            return
        self._pages.truncate(context, 0)
        self._generations = {i: g for i, g in self._generations.items() if g.context is not context}
