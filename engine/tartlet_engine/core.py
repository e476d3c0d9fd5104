"""The engine without its thread: commands go in, steps are carried out, events come out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tartlet_engine.api import Command, EngineError, EngineStats, ErrorCode, Event, ModelInfo
from tartlet_engine.commands import CommandHandler
from tartlet_engine.constraints.compiler import ConstraintCompiler
from tartlet_engine.constraints.operations import ConstraintOperations
from tartlet_engine.constraints.program_matchers import ProgramMatchers
from tartlet_engine.contexts import ContextTable
from tartlet_engine.costs import Costs
from tartlet_engine.demands import Demands
from tartlet_engine.eviction import Evictions
from tartlet_engine.fairness import FairShares
from tartlet_engine.forward import ForwardPasses
from tartlet_engine.model_runner import ModelRunner
from tartlet_engine.pager import Pager
from tartlet_engine.pages import PagePool
from tartlet_engine.preemption import Preemption
from tartlet_engine.prefix_cache import PrefixCache
from tartlet_engine.published import PublishedPrefixes
from tartlet_engine.save_operations import SaveOperations
from tartlet_engine.saved_contexts import SavedContexts
from tartlet_engine.scheduler import Scheduler
from tartlet_engine.side_work import SideWork
from tartlet_engine.step import Stepper
from tartlet_engine.stepping.operations import StepOperations
from tartlet_engine.swap import SwapSpace
from tartlet_engine.token_table import TokenTable
from tartlet_engine.transfers import Transfers

_log = logging.getLogger("tartlet_engine")


class EngineCore:
    """One model with its pages, contexts and demands. Everything on one thread."""

    def __init__(
        self,
        info: ModelInfo,
        token_table: TokenTable,
        runner: ModelRunner,
        max_batch_tokens: int,
        has_prefix_cache: bool = True,
        saved: SavedContexts | None = None,
        swap_bytes: int = 0,
        costs: Costs | None = None,
        adapter_digests: Mapping[str, str] | None = None,
        constraints: ConstraintCompiler | None = None,
    ) -> None:
        """Serve one model.

        Args:
            info: its `num_pages` and `page_size` must be those of the runner's KV cache.
            token_table: the bytes of the model's tokens.
            runner: the model.
            max_batch_tokens: the token budget of a step.
            has_prefix_cache: computed pages are kept for whoever of a tenant has the same tokens.
            saved: where contexts are saved; without it, in memory.
            swap_bytes: host memory for pages that leave the KV cache.
            costs: what swapping and computing cost; None: they are measured.
            adapter_digests: of the adapters of `info`, which the runner holds.
            constraints: compiles them; without it, they are unsupported.
        """
        self._adapters = info.adapters
        costs = costs or Costs()
        swap = SwapSpace(swap_bytes, page_bytes=runner.read_pages([0]).nbytes)
        self._pool = PagePool(info.num_pages, info.page_size, swap)
        self._contexts = ContextTable(self._pool, info.context_len)
        self._demands = Demands(self._contexts)
        self._shares = FairShares(info.page_size)
        self._side_work = SideWork(self._contexts, costs)
        self._prefix_cache = PrefixCache(self._pool, info.name) if has_prefix_cache else None
        self._published = PublishedPrefixes(info, self._pool, self._contexts, self._demands, self._prefix_cache)
        self._handler = CommandHandler(info, token_table, self._pool, self._contexts, self._demands, self._shares)
        self._handler.add(self._published.handlers)
        pager = Pager(self._pool, self._contexts, runner, costs)
        kept = self._published.page_tables
        self._preemption = Preemption(self._pool, self._contexts, pager, max_batch_tokens, kept)
        scheduler = Scheduler(self._pool, max_batch_tokens, self._shares, self._prefix_cache, self._preemption, costs)
        self._stepper = Stepper(
            self._contexts, self._demands, self._pool, self._shares, scheduler, runner, costs, self._prefix_cache
        )
        self._saved = saved or SavedContexts(fingerprint="")
        self._worker = ThreadPoolExecutor(1, "tartlet-saved")
        accounts = self._handler.accounts
        self._transfers = Transfers(self._contexts, self._demands, accounts, self._side_work)
        self.saves = SaveOperations(
            info,
            pager,
            self._preemption,
            self._contexts,
            self._demands,
            accounts,
            self._handler.require_computable,
            self._saved,
            self._worker,
            self._transfers,
            adapter_digests or {},
        )
        self._handler.add(self.saves.handlers)
        self.constraints = ConstraintOperations(constraints, info.vocabulary_size, accounts, self._demands)
        self._handler.add(self.constraints.handlers)
        self.matchers = ProgramMatchers(
            self.constraints,
            accounts,
            self._demands,
            vocabulary_size=info.vocabulary_size,
            max_tokens=info.context_len,
        )
        self._handler.add(self.matchers.handlers)
        self._handler.constraints = self.constraints
        self._handler.matchers = self.matchers
        steps = StepOperations(info, self._contexts, self._demands, self._stepper.stepped, self.constraints)
        self._handler.add(steps.handlers)
        evictions = Evictions(
            info,
            runner,
            self._contexts,
            self._demands,
            self._preemption,
            self._handler.require_computable,
            self._transfers,
            self._side_work,
            pager.page_bytes,
        )
        self._handler.add(evictions.handlers)
        passes = ForwardPasses(
            info,
            self._contexts,
            self._demands,
            self._prefix_cache,
            self._side_work,
            self._handler.require_computable,
            max_batch_tokens,
        )
        self._handler.add(passes.handlers)

    @property
    def has_work(self) -> bool:
        """Tell whether somebody waits for something that steps bring nearer."""
        between_steps = (self.saves, self._transfers, self.constraints, self.matchers)
        return self._has_model_work or any(each.has_work for each in between_steps)

    @property
    def _has_model_work(self) -> bool:
        return bool(self._contexts.active) or self._stepper.is_ahead or self._stepper.stepped.has_answers

    def handle(self, command: Command, arrived_ns: int) -> None:
        """Carry out a command. Never raises for what the command holds."""
        self._handler.handle(command, arrived_ns)

    def prepare_close(self, run_id: int, is_over: Callable[[], bool]) -> bool:
        """Free what a run holds before `CloseRun` is carried out, until `is_over`. Tells whether nothing is left.

        Closing a run of thousands of contexts would take long at once.
        """
        account = self._handler.accounts.get(run_id)
        return account is None or self._demands.free_some(account, is_over)

    def charge(self, tenant: str, seconds: float) -> None:
        """Charge a tenant for time that its commands took. No effect if it is not known any more."""
        share = self._shares.tenants.get(tenant)
        if share is not None:
            self._side_work.charge(share, seconds)

    def step(self) -> None:
        """Carry out one step: of the model if anybody waits for it, and of what concerns saved contexts.

        An error outside the model's forward pass is a fault of our own: whoever waits then is told, and the engine goes
        on if its books still balance.

        Raises:
            AssertionError: they do not; the engine cannot go on.
        """
        began = time.monotonic()
        if self._has_model_work:
            self._guard(self._stepper.step)
        step_s = time.monotonic() - began
        self._stepper.stepped.patience.note_step(int(step_s * 1e9))
        self.saves.advance()
        self._transfers.advance(step_s)
        self.constraints.advance()
        self.matchers.advance()
        self._published.settle()

    def before_pass(self, action: Callable[[], None]) -> None:
        """Call `action` right before each forward pass, to tell the events so far.

        Programs take them in while the pass computes. Told any earlier, they would hold up what is left to be done
        before it: threads of one Python interpreter take turns.
        """
        self._stepper.before_pass = action

    def sample_answered(self) -> None:
        """Do what a step begins with: sample what programs have answered."""
        if self._stepper.stepped.has_answers:
            self._guard(self._stepper.sample_answered)

    def begin_waiting(self) -> None:
        """Choose whose answers the next step waits for, if that is worth it: until `wait_ns_left` is 0."""
        if not (self.saves.has_work or self._transfers.has_work):
            self._stepper.stepped.begin_waiting()

    @property
    def wait_ns_left(self) -> int:
        """Nanoseconds for which the next step waits for answers; 0: for none, or no longer."""
        stepped = self._stepper.stepped
        if not (stepped.patience.is_awaiting and stepped.is_alone):
            return 0
        return max(0, stepped.patience.deadline_ns - time.monotonic_ns())

    def _guard(self, action: Callable[[], object]) -> None:
        """Carry out a part of a step; whoever waits is told if it fails."""
        try:
            action()
        except Exception as error:
            _log.exception("step=%d failed outside the forward pass", self._stepper.num_steps)
            failure = EngineError(ErrorCode.INTERNAL, f"a step failed: {type(error).__name__}: {error}")
            for sequence in [*self._contexts.active.values(), *self._stepper.stepped.answered_sequences]:
                sequence.forget()
                self._demands.fail(sequence, failure)
            self.check_integrity()

    def take_events(self) -> list[Event]:
        """Return the events since the last call. What pages are held is told with others, or when there is time."""
        events, self._demands.events = self._demands.events, []
        changed = self._handler.changed
        if changed and (events or not self.has_work):
            events += [account.pages_held() for account in changed if not account.is_closing]
            changed.clear()
        return events

    def stats(self) -> EngineStats:
        """Return the counters as they are now."""
        waiting = sum(sequence.is_waiting for sequence in self._contexts.active.values())
        cache = self._prefix_cache
        return EngineStats(
            pages_total=self._pool.num_pages,
            pages_free=self._pool.num_free,
            pages_cached=self._pool.num_cached,
            pages_held=self._pool.num_held,
            runs=len(self._handler.accounts),
            contexts=len(self._contexts.sequences),
            running=len(self._contexts.active) - waiting,
            waiting=waiting,
            steps=self._stepper.num_steps,
            prefill_tokens=self._stepper.num_prefill_tokens,
            generated_tokens=self._stepper.num_generated_tokens,
            lookup_tokens=0 if cache is None else cache.num_lookup_tokens,
            found_tokens=0 if cache is None else cache.num_found_tokens,
            recomputed_tokens=self._stepper.num_recomputed_tokens,
            draft_tokens=self._stepper.drafts.num_drafted,
            accepted_tokens=self._stepper.drafts.num_accepted,
            preemptions=self._preemption.num_preemptions,
            pages_swapped=self._pool.swap.num_pages,
            swapped_bytes=self._pool.swap.num_pages * self._pool.swap.page_bytes,
        )

    def check_integrity(self) -> None:
        """Raise AssertionError unless every page, context and reference count adds up."""
        self._contexts.check_integrity(self._published.page_tables.values())
        self._demands.check_integrity()
        self.saves.check_integrity()
        self.constraints.check_integrity()
        self.matchers.check_integrity()
        self._published.check_integrity()
        for account in self._handler.accounts.values():
            account.check_integrity(sequence.page_table.page_ids for sequence in self._contexts.of_run(account))
        self._shares.check_integrity()
        for share in self._shares.tenants.values():
            runs = [account for account in self._handler.accounts.values() if account.share is share]
            assert len(runs) == share.num_runs, f"tenant {share.tenant}"
            share.check_integrity(account.pool_page_ids for account in runs)
        operators = self._published.account
        accounts = {operators.run_id: operators, **self._handler.accounts}
        for sequence in self._contexts.sequences.values():
            run_id = sequence.account.run_id
            assert accounts.get(run_id) is sequence.account, f"context {sequence.context_id} outlives run {run_id}"
            assert sequence.adapter in (None, *self._adapters), f"context {sequence.context_id} has no such adapter"

    def close(self) -> None:
        """Wait until what is saved has been written. Idempotent; from any thread that calls nothing else here."""
        self._worker.shutdown()
        self._saved.close()
        self.constraints.close()
