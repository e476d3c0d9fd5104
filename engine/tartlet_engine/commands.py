"""Carries out commands: checks them, then changes contexts and demands. Never raises for what a command holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from tartlet_engine import validation
from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import (
    AppendTokens,
    CancelGeneration,
    CloseRun,
    Command,
    CreateContext,
    Done,
    EngineError,
    ErrorCode,
    Failed,
    Fence,
    FinishReason,
    FlushContext,
    ForkContext,
    FreeContext,
    Generate,
    ModelInfo,
    OpenRun,
    RunClosed,
    TruncateContext,
    failed_id,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.operations import ConstraintOperations
from tartlet_engine.constraints.program_matchers import ProgramMatchers
from tartlet_engine.contexts import ContextTable
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import MAX_WEIGHT, MIN_WEIGHT, FairShares
from tartlet_engine.generation import Generation
from tartlet_engine.pages import PagePool
from tartlet_engine.sequence import Sequence
from tartlet_engine.stepping.state import StepState
from tartlet_engine.stop import StopDecider
from tartlet_engine.token_table import TokenTable

_log = logging.getLogger("tartlet_engine")


class CommandHandler:
    """Carries out one command after the other. Not thread-safe."""

    def __init__(
        self,
        info: ModelInfo,
        token_table: TokenTable,
        pool: PagePool,
        contexts: ContextTable,
        demands: Demands,
        shares: FairShares,
    ) -> None:
        """Carry out commands on these contexts and demands, for one model and the tenants of `shares`."""
        self._info = info
        self._token_table = token_table
        self._pool = pool
        self._contexts = contexts
        self._demands = demands
        self._shares = shares
        self.accounts: dict[int, RunAccount] = {}
        self.changed: dict[RunAccount, None] = {}  # that hold another number of pages than was told last
        self.constraints: ConstraintOperations  # set by whoever knows of constraints
        self.matchers: ProgramMatchers
        self._handlers: dict[type, Callable[[Any, int], None]] = {
            OpenRun: self._open_run,
            CloseRun: self._close_run,
            Fence: self._fence,
            CreateContext: self._create,
            AppendTokens: self._append,
            ForkContext: self._fork,
            TruncateContext: self._truncate,
            FlushContext: self._flush,
            FreeContext: self._free,
            Generate: self._generate,
            CancelGeneration: self._cancel,
        }

    def add(self, handlers: Mapping[type, Callable[[Any, int], None]]) -> None:
        """Let others carry out more kinds of commands: called with the command and its time of arrival."""
        self._handlers.update(handlers)

    def handle(self, command: Command, arrived_ns: int) -> None:
        """Carry out a command that was submitted at `arrived_ns`. What goes wrong becomes a `Failed` event."""
        try:
            self._handlers[type(command)](command, arrived_ns)
        except CommandError as error:
            self._demands.events.append(Failed(failed_id(command), error.error))
        except Exception as error:
            _log.exception("command=%s failed", type(command).__name__)
            message = f"{type(command).__name__} failed: {type(error).__name__}: {error}"
            self._demands.events.append(Failed(failed_id(command), EngineError(ErrorCode.INTERNAL, message)))

    def _open_run(self, command: OpenRun, arrived_ns: int) -> None:
        if command.run_id in self.accounts:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a run {command.run_id} already")
        validation.check_tenant(command.tenant)
        if not MIN_WEIGHT <= command.weight <= MAX_WEIGHT:
            message = f"weight must be {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, got {command.weight}"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        share = self._shares.open_run(command.tenant, command.weight)
        self.accounts[command.run_id] = RunAccount(
            command.run_id, command.tenant, command.max_generated_tokens, command.max_pages, share, self.changed
        )

    def _close_run(self, command: CloseRun, arrived_ns: int) -> None:
        account = self.accounts.pop(command.run_id, None)
        if account is not None:
            self._demands.close_run(account)
            self.matchers.close_run(account)
            self._shares.close_run(account.share)
            self.changed.pop(account, None)
            if command.tells_totals:
                prompt, generated = account.num_prompt_tokens, account.num_generated_tokens
                closed = RunClosed(account.run_id, prompt, generated, account.page_time.total_ns)
                self._demands.events.append(closed)

    def _fence(self, command: Fence, arrived_ns: int) -> None:
        if command.run_id not in self.accounts:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {command.run_id}")
        self._demands.events.append(Done(command.operation_id))

    def _create(self, command: CreateContext, arrived_ns: int) -> None:
        account = self.accounts.get(command.run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {command.run_id}")
        validation.check_adapter(command.adapter, self._info)
        self._contexts.create(command.context_id, account, command.adapter)

    def _append(self, command: AppendTokens, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        validation.check_token_ids("token_ids", command.token_ids, self._info.vocabulary_size)
        self._contexts.append(sequence, command.token_ids)

    def _fork(self, command: ForkContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.fork(sequence, command.child_id, command.length)

    def _truncate(self, command: TruncateContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.truncate(sequence, command.length)
        self._demands.complete_flushes(sequence)

    def _flush(self, command: FlushContext, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        self.require_computable(sequence)
        self._contexts.flush(sequence, command.operation_id)
        self._demands.complete_flushes(sequence)

    def _free(self, command: FreeContext, arrived_ns: int) -> None:
        sequence = self._contexts.sequences.get(command.context_id)
        if sequence is not None:
            self._demands.free(sequence)

    def _generate(self, command: Generate, arrived_ns: int) -> None:
        sequence = self._contexts.get(command.context_id)
        self._contexts.require_idle(sequence)
        validation.check_generate(command, self._info.vocabulary_size)
        prompt_len = len(sequence.token_ids)
        if prompt_len == 0:
            message = f"context {command.context_id} is empty"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "Fill it with at least one token first.")
        self.require_computable(sequence)
        room = self._info.context_len - sequence.next_position
        max_tokens = room if command.stop.max_tokens is None else min(command.stop.max_tokens, room)
        decider = StopDecider(command.stop, self._info.eos_token_ids, max_tokens, self._token_table)
        account, matcher, allowed = sequence.account, None, None
        steps = StepState(prompt_len, decider.state) if command.stepped else None
        if command.mask_id is not None:
            allowed = self.constraints.masks.get_sampled(account, command.mask_id)
        if command.constraint_id is not None:
            matcher = self.constraints.begin(
                account, command.constraint_id, allowed=allowed, takes_forced=not command.stepped
            )
        generation = Generation(command, sequence, decider, arrived_ns, matcher, allowed, steps)
        self._demands.begin(generation)
        account.num_prompt_tokens += prompt_len
        if room == 0 and steps is None:
            self._demands.finish(generation, FinishReason.LENGTH)

    def _cancel(self, command: CancelGeneration, arrived_ns: int) -> None:
        self._demands.cancel(command.generation_id)

    def require_computable(self, sequence: Sequence, num_more: int = 0) -> None:
        """Raise CommandError for what can never be computed: more pages than there are, or than the run may hold.

        With so many more tokens than the sequence has.
        """
        account = sequence.account
        if account.is_stopped:
            message = f"run {account.run_id} has reached one of its limits"
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, "Start a new run, with higher limits.")
        tokens = len(sequence.token_ids) + num_more
        needed = self._pool.pages_for(tokens)
        have, whose = self._pool.num_pages, "the KV cache has"
        if account.max_pages is not None and account.max_pages < have:
            have, whose = account.max_pages, "the run may hold"
        if needed > have:
            message = f"a context of {tokens:,} tokens needs {needed:,} pages; {whose} {have:,}"
            hint = "Use a shorter context, or a larger KV cache (kv_pages) or page limit of the run."
            raise CommandError(ErrorCode.KV_EXHAUSTED, message, hint)
