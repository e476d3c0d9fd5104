"""One step of the engine: schedule, prepare, forward, sample, commit.

The order of a step is the order of the methods below. A failure in it ends the generations and flushes that took part,
or the single one that it concerns, and nothing else.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

import torch

from tartlet_engine.api import EngineError, ErrorCode
from tartlet_engine.batch import build_batch, order_chunks
from tartlet_engine.commits import Commits
from tartlet_engine.constraints.rows import ConstrainedRows
from tartlet_engine.contexts import ContextTable
from tartlet_engine.costs import Costs
from tartlet_engine.demands import Demands
from tartlet_engine.draft_rows import DraftRows
from tartlet_engine.fairness import PREFILL_COST, FairShares
from tartlet_engine.generation import Generation
from tartlet_engine.kept_logits import give_up_logits
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.pages import PagePool
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.run_ahead import AheadRunner, RunAhead
from tartlet_engine.sampler import Sampled, launch_sampling, launch_sampling_each
from tartlet_engine.scheduler import Scheduler
from tartlet_engine.sequence import Sequence
from tartlet_engine.step_plan import Chunk, StepPlan
from tartlet_engine.step_timer import StepTimer
from tartlet_engine.stepping.rows import SteppedRows, row_of
from tartlet_engine.watchdog import Watchdog

_log = logging.getLogger("tartlet_engine")


class Stepper:
    """Carries out steps over the sequences that somebody waits for. On the engine's thread."""

    def __init__(
        self,
        contexts: ContextTable,
        demands: Demands,
        pool: PagePool,
        shares: FairShares,
        scheduler: Scheduler,
        runner: ModelRunner,
        costs: Costs,
        prefix_cache: PrefixCache | None,
    ) -> None:
        """Step over `contexts`; what comes of it goes to `demands`, what it costs to `shares`."""
        self._contexts = contexts
        self._demands = demands
        self._pool = pool
        self._shares = shares
        self._scheduler = scheduler
        self._runner = runner
        self._prefix_cache = prefix_cache
        self._timer = StepTimer(costs, is_beside=isinstance(runner, AheadRunner))
        self._watchdog = Watchdog(pool)
        self._commits = Commits(demands)
        self._constrained = ConstrainedRows(demands, self._commits)
        self.drafts = DraftRows(pool, demands, self._commits, self._constrained, prefix_cache)
        self.stepped = SteppedRows(contexts, demands, self._commits)
        self._ahead = RunAhead(pool, runner, scheduler.max_batch_tokens)
        self.before_pass: Callable[[], None] = lambda: None  # called before a forward pass
        self.num_steps = 0
        self.num_prefill_tokens = 0
        self.num_recomputed_tokens = 0

    @property
    def is_ahead(self) -> bool:
        """Tell whether something has been computed ahead: another step takes it, or gives back its pages."""
        return self._ahead.is_ahead

    @property
    def num_generated_tokens(self) -> int:
        """Tokens that generations have got, forced ones included."""
        return self._commits.num_tokens

    def sample_answered(self) -> bool:
        """Sample stepped generations whose answer and logits are there, so that the next step computes their tokens.

        Tells whether there were any.
        """
        generations = self._constrained.ready(self.stepped.take_answered(), is_idle=not self._contexts.active)
        generations = self.stepped.masked(generations)
        if not generations:
            return False
        logits = [row for generation in generations if (row := generation.sequence.logits) is not None]
        results = launch_sampling_each(logits, [row_of(generation) for generation in generations]).wait()
        self._commit(generations, results)
        return True

    def step(self) -> None:
        """Carry out one step. Every call ends some demand or brings some nearer to its end."""
        self.sample_answered()
        if not self._contexts.active:
            self._ahead.take(())
            return
        self.num_steps += 1
        try:
            self._constrained.append_forced(self._contexts.active.values())
            plan = self._scheduler.plan(self._contexts.active.values(), self.num_steps)
            self._carry_out(plan)
            self._shares.end_step(plan.active, plan.backlogged)
        finally:
            self._scheduler.finish()
            if not self._contexts.active:
                self._timer.forget()  # of what nobody has waited for; until the next step, time passes

    def _carry_out(self, plan: StepPlan) -> None:
        for breach in plan.breaches:
            self._demands.stop_run(breach)
        self.drafts.add(plan, self._scheduler.room(plan))
        chunks = order_chunks([chunk for chunk in plan.chunks if chunk.sequence.has_demand])
        logits = self._forward(chunks, plan)
        self._scheduler.finish()  # copies have been made: what follows may take their sources like any other page
        for sequence in plan.moving:
            self._demands.complete_move(sequence)
        computed = [] if logits is None else self._note_computed(chunks, logits)
        self.drafts.end_lookahead()
        sampled = self._sample(computed, logits, is_idle=not chunks)
        self.drafts.finish()
        hopeless = [s for s in plan.waiting if self._pool.pages_for(s.target_slots) > self._pool.num_pages]
        for sequence in hopeless:
            self._fail_for_pages(sequence, self._pool.num_pages)
        has_progressed = bool(chunks or sampled or plan.breaches or hopeless or plan.moving)
        if not has_progressed and self._contexts.holders_between_steps:
            has_progressed = True  # what is being saved or opened goes on between steps, and then gives its pages back
        elif not has_progressed and plan.stuck is not None:
            # All others stood back and it is still not enough, so nothing can ever go on while it is there.
            self._fail_for_pages(plan.stuck, plan.num_obtainable_pages)
            has_progressed = True
        self._watchdog.note_step(has_progressed, self._contexts.active.values())
        if logits is not None:
            give_up_logits(self._contexts.sequences.values(), logits.shape[1] * logits.element_size())

    def _forward(self, chunks: list[Chunk], plan: StepPlan) -> torch.Tensor | None:
        """Compute the chunks: float32[R, V] for those that want logits, in their order; None if nothing came of it."""
        if not chunks:
            self._ahead.take(())
            return None
        for chunk in chunks:
            if chunk.sequence.generation is not None:
                chunk.sequence.generation.note_cached(chunk.start)
        try:
            return self._compute(chunks, plan)
        except Exception as error:
            num_tokens = sum(chunk.num_tokens for chunk in chunks)
            _log.exception("step=%d tokens=%d failed", self.num_steps, num_tokens)
            self._timer.forget()
            message = f"the model failed in a step of {num_tokens} tokens: {type(error).__name__}: {error}"
            for chunk in chunks:
                chunk.sequence.forget()  # copies on write may not have been carried out
                self._demands.fail(chunk.sequence, EngineError(ErrorCode.INTERNAL, message))
            return None

    def _compute(self, chunks: list[Chunk], plan: StepPlan) -> torch.Tensor:
        """Compute those of the chunks that have not been computed ahead: float32[R, V] for all that want logits."""
        ahead, logits = self._ahead.take(chunks)
        rest = [chunk for chunk in chunks if chunk.sequence not in ahead]
        if rest:
            batch = build_batch(rest, plan.page_copies, self._pool.page_size, self._runner.device)
            self.stepped.keep_lent_logits()
            self.before_pass()
            self._timer.begin()
            computed = self._runner.forward(batch)
            self._timer.launched(sum(chunk.num_tokens for chunk in rest))
            logits = torch.cat([logits, computed]) if ahead else computed
        if not ahead:
            return logits
        others = itertools.count(len(logits) - sum(len(chunk.logit_slots) for chunk in rest))
        rows = [ahead[c.sequence] if c.sequence in ahead else next(others) for c in chunks for _ in c.logit_slots]
        return logits if rows == list(range(len(logits))) else logits[torch.tensor(rows).to(logits.device)]

    def _note_computed(self, chunks: list[Chunk], logits: torch.Tensor) -> list[Sequence]:
        """Note what is computed, and let forks, flushes and lookaheads go on.

        Returns the sequences after whose last own token logits have been computed, in the order of these.
        """
        completed: list[Sequence] = []
        looking_ahead: list[tuple[Sequence, list[int], torch.Tensor]] = []
        row = 0
        for chunk in chunks:
            sequence, length, slots = chunk.sequence, len(chunk.sequence.token_ids), chunk.logit_slots
            is_prefill = not sequence.is_decoding and not self.drafts.has_draft(sequence)
            num_new_ahead = sequence.note_computed(chunk.end)
            if is_prefill:
                self._note_prefilled(chunk, num_new_ahead)
            if self._prefix_cache is not None:
                self._prefix_cache.note_computed(sequence)
            if slots and slots[0] < length:
                sequence.logits = logits[row]
                completed.append(sequence)
                if sequence.generation is not None and sequence.generation.steps is not None:
                    self.stepped.lend_logits(sequence)
                elif sequence.generation is None or sequence.followers:
                    # Kept after this step: a copy of its own, which does not keep the whole step's logits.
                    sequence.logits = sequence.logits.clone()
            if sequence.followers:
                self._contexts.share_with_followers(sequence)
            if sequence.lookahead is not None:
                rows_ahead = [slot - length for slot in slots]
                looking_ahead.append((sequence, rows_ahead, logits[row : row + len(slots)]))
            row += len(slots)
        for sequence, rows_ahead, logits_ahead in looking_ahead:  # this may end what others of the run wait for
            self._demands.hand_over(sequence, rows_ahead, logits_ahead)
        # Of all, not only of those computed: a fork's flush is done when it shares what its source has computed.
        for sequence in [s for s in self._contexts.active.values() if s.flushes or s.lookahead]:
            self._demands.complete_flushes(sequence)
            self._demands.complete_lookahead(sequence)
        return completed

    def _note_prefilled(self, chunk: Chunk, num_new_ahead: int) -> None:
        """Count and charge prefill, but not what is computed again because pages had to be given up for others.

        Of tokens of a lookahead, so many have been computed for the first time.
        """
        num_own = chunk.num_own
        num_new = num_own - min(num_own, max(0, chunk.sequence.num_dropped - chunk.start)) + num_new_ahead
        self.num_recomputed_tokens += chunk.num_tokens - num_new
        self.num_prefill_tokens += num_new
        chunk.sequence.account.share.charge(PREFILL_COST * num_new)

    def _sample(self, computed: list[Sequence], logits: torch.Tensor | None, *, is_idle: bool) -> bool:
        """Sample for every generation whose logits are there: just computed, or kept. Tells whether there was any.

        Those whose mask is not there yet keep their logits, and count as there, too.

        Args:
            computed: the sequences of the rows of `logits`, as far as these come after own tokens.
            logits: float32[R, V] of the step, or None if nothing was computed.
            is_idle: there is nothing to do until the first mask is there.
        """
        row_sequences = computed
        kept = [sequence for sequence in self._contexts.active.values() if sequence.logits is not None]
        if len(kept) > len(computed):
            computed = list(dict.fromkeys((*computed, *kept)))
        generations = [sequence.generation for sequence in computed if sequence.generation is not None]
        generations, has_parked = self.stepped.answered_of(generations)
        if not generations:
            return has_parked
        generations = self.stepped.masked(self._constrained.ready(generations, is_idle=is_idle))
        if not generations:
            return True
        rows = [row_of(generation) for generation in generations]
        is_rows = logits is not None and len(logits) == len(row_sequences)
        if logits is not None and is_rows and [generation.sequence for generation in generations] == row_sequences:
            pending = launch_sampling(logits, rows)
        else:
            kept_logits = [row for generation in generations if (row := generation.sequence.logits) is not None]
            pending = launch_sampling_each(kept_logits, rows)
        if self._ahead.is_possible:
            self.stepped.keep_lent_logits()
        self._ahead.launch(generations, pending, len(self._contexts.active))
        results = pending.wait()
        self._timer.waited()
        self._commit(generations, results)
        return True

    def _commit(self, generations: list[Generation], results: list[Sampled | EngineError]) -> None:
        """Append what was sampled."""
        for generation, result in zip(generations, results, strict=True):
            generation.note_cached(generation.prompt_len)
            if isinstance(result, EngineError):
                self._demands.fail(generation.sequence, result)
            elif generation.sequence.account.is_stopped:
                continue
            elif generation.steps is not None:
                self.stepped.sampled(generation, result)
            else:
                self.drafts.commit(generation, result)

    def _fail_for_pages(self, sequence: Sequence, have: int) -> None:
        """Fail a sequence that needs more pages than it can have, and take back those that it has.

        What was computed of one that only needs pages to move into stays.
        """
        if sequence.room is not None:
            needed = len(sequence.page_table.page_ids) + sequence.num_extra_pages
            message = (
                f"moving what is kept needs {needed:,} pages; "
                f"{have:,} of {self._pool.num_pages:,} can be had, if all others stand back as far as they can"
            )
            hint = "Free forks, or evict as many tokens as fill whole pages, which moves those of one page only."
            self._demands.fail(sequence, EngineError(ErrorCode.KV_EXHAUSTED, message, hint))
            return
        needed = self._pool.pages_for(sequence.target_slots)
        message = (
            f"a context of {len(sequence.token_ids):,} tokens needs {needed:,} pages; "
            f"{have:,} of {self._pool.num_pages:,} can be had, if all others stand back as far as they can"
        )
        hint = "Use a shorter context, or give the engine a larger KV cache (kv_pages)."
        sequence.forget()
        self._demands.fail(sequence, EngineError(ErrorCode.KV_EXHAUSTED, message, hint))
