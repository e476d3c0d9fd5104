"""What the fake engine knows: runs, contexts, pages, generations, and the events that it has to tell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tartlet.testing.fake_constraints import FakeBelongings, FakeConstraints
from tartlet.testing.fake_generation import FakeGeneration
from tartlet.testing.fake_page_time import PageTime
from tartlet.testing.fake_pages import FakeContext, FakePages, PagesExhaustedError
from tartlet.testing.fake_steps import FakeSteps
from tartlet_engine.api import (
    Done,
    EngineError,
    EngineStats,
    ErrorCode,
    Event,
    Failed,
    LimitReached,
    ModelInfo,
    OpenRun,
    PagesHeld,
)

_NO_PAGE = EngineError(ErrorCode.KV_EXHAUSTED, "no page is free")


@dataclass(slots=True)
class _Totals:
    """Counters that only grow."""

    steps: int = 0
    prefill_tokens: int = 0
    generated_tokens: int = 0


class FakeState:
    """The state that the handlers of all commands share. Not thread-safe."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.pages = FakePages(info.num_pages, info.page_size)
        self.runs: dict[int, OpenRun] = {}
        self.num_generated: dict[int, int] = {}  # by run
        self.num_prompt: Counter[int] = Counter()  # tokens in contexts when generations began, by run
        self.page_times: dict[int, PageTime] = {}  # by run
        self.contexts: dict[int, FakeContext] = {}
        self.generations: dict[int, FakeGeneration] = {}
        self.steps: dict[int, FakeSteps] = {}  # stepped generations
        self.constraints = FakeConstraints()
        self.masks = FakeBelongings()
        self.matchers = FakeBelongings()
        self.matcher_moves: dict[int, int] = {}  # by matcher
        self.events: list[Event] = []
        self.totals = _Totals()

    def stats(self) -> EngineStats:
        """Give the counters."""
        num_free = self.pages.num_free
        return EngineStats(
            pages_total=self.info.num_pages,
            pages_free=num_free,
            pages_cached=0,
            pages_held=self.info.num_pages - num_free,
            runs=len(self.runs),
            contexts=len(self.contexts),
            running=len(self.generations),
            waiting=0,
            steps=self.totals.steps,
            prefill_tokens=self.totals.prefill_tokens,
            generated_tokens=self.totals.generated_tokens,
            lookup_tokens=0,
            found_tokens=0,
            recomputed_tokens=0,
            preemptions=0,
            pages_swapped=0,
            swapped_bytes=0,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError unless pages, contexts and generations add up."""
        self.pages.check(self.contexts.values())
        for belongings in (self.constraints, self.masks, self.matchers):
            belongings.check(self.runs)
        assert all(context.run_id in self.runs for context in self.contexts.values())
        assert all(g.context.context_id in self.contexts for g in self.generations.values())
        assert all(s.context.context_id in self.contexts for s in self.steps.values())

    def answer(self, operation_id: int, error: EngineError | None = None) -> None:
        """Say that an operation is done, or why it failed."""
        self.events.append(Done(operation_id) if error is None else Failed(operation_id, error))

    def prefill(self, context: FakeContext, failed_id: int) -> bool:
        """Compute what was appended, or fail the operation of that id: at once if it can never fit."""
        allowed = min(self.info.num_pages, self.runs[context.run_id].max_pages or self.info.num_pages)
        needed = -(-len(context.token_ids) // self.info.page_size)
        if needed > allowed:
            message = f"a context of {len(context.token_ids):,} tokens needs {needed:,} pages; {allowed:,} are allowed"
            self.answer(failed_id, EngineError(ErrorCode.KV_EXHAUSTED, message))
            return False
        num_before = context.num_computed
        is_done = self.compute(context, failed_id)
        self.totals.prefill_tokens += context.num_computed - num_before
        return is_done

    def prefill_within_limits(self, context: FakeContext, failed_id: int) -> bool:
        """Compute what was appended; whether that worked, and the run may go on."""
        return self.prefill(context, failed_id) and not self.is_over_limit(context.run_id)

    def compute(self, context: FakeContext, failed_id: int) -> bool:
        """Give pages to all of the context's tokens, or fail the operation of that id."""
        try:
            self.pages.compute(context)
        except PagesExhaustedError:
            self.answer(failed_id, _NO_PAGE)
            return False
        return True

    def is_over_limit(self, run_id: int) -> bool:
        """Stop a run that has used more tokens or pages than it may."""
        run = self.runs[run_id]
        num_pages = self.num_held(run_id) if run.max_pages is not None else 0
        for limit, used, allowed in (
            ("generated_tokens", self.num_generated[run_id], run.max_generated_tokens),
            ("kv_pages", num_pages, run.max_pages),
        ):
            if allowed is not None and used > allowed:
                self.generations = {i: g for i, g in self.generations.items() if g.context.run_id != run_id}
                self.steps = {i: s for i, s in self.steps.items() if s.context.run_id != run_id}
                self.events.append(LimitReached(run_id, limit, used, allowed))
                return True
        return False

    def num_held(self, run_id: int) -> int:
        """Pages that a run's contexts hold, each once."""
        return len({page for c in self.contexts.values() if c.run_id == run_id for page in c.pages})

    def note_page_times(self) -> None:
        """Tell of each run that holds another number of pages than before."""
        for run_id, page_time in self.page_times.items():
            num_gained = self.num_held(run_id) - page_time.num_pages
            if num_gained:
                page_time.add(num_gained)
                self.events.append(PagesHeld(run_id, page_time.num_pages, page_time.total_ns, page_time.since_ns))

    def free(self, context_id: int) -> None:
        """Give back a context's pages, and forget who generates from it."""
        context = self.contexts.pop(context_id, None)
        if context is None:  # it could not be opened
            return
        self.pages.truncate(context, 0)
        self.generations = {i: g for i, g in self.generations.items() if g.context is not context}
        self.steps = {i: s for i, s in self.steps.items() if s.context is not context}
