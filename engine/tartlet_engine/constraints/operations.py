"""The commands that concern constraints, on the engine's thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import (
    Combination,
    CombineConstraints,
    CompileConstraint,
    ConstrainToMask,
    Done,
    EngineError,
    ErrorCode,
    Failed,
    FreeConstraint,
)
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.combination import AllOf, AnyOf
from tartlet_engine.constraints.compiler import ConstraintCompiler, Result
from tartlet_engine.constraints.follower import Follower, TokenSetFollower
from tartlet_engine.constraints.masks import MaskTable
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.pool import MaskPool
from tartlet_engine.constraints.vocabulary import Words
from tartlet_engine.demands import Demands

MOST_OF_A_RUN = 1024  # constraints, those being compiled included
MOST_PARTS = 8  # grammars and masks of one combination, those of its parts included
MOST_MATCHERS = 512  # of a tenant, of generations and programs together


class ConstraintOperations:
    """The constraints of all runs, and what is being compiled. All but `on_result` is for the engine's thread.

    Compiled constraints lie in their run's account, and go away with it.
    """

    def __init__(
        self,
        compiler: ConstraintCompiler | None,
        vocabulary_size: int,
        accounts: dict[int, RunAccount],
        demands: Demands,
    ) -> None:
        """Compile with `compiler`, for the runs of `accounts`; without one, constraints are unsupported."""
        self._compiler = compiler
        self._accounts = accounts
        self._demands = demands
        self._pool = MaskPool(max(2, (os.cpu_count() or 1) // 2))
        self._pending: dict[int, RunAccount] = {}  # by constraint id
        self._results: deque[tuple[int, Result]] = deque()  # filled by the compiler, for this thread
        self.masks = MaskTable(vocabulary_size, accounts)
        self.on_result: Callable[[], None] = lambda: None  # called on the compiler's thread
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            CompileConstraint: self._compile,
            CombineConstraints: self._combine,
            ConstrainToMask: self._constrain_to_mask,
            FreeConstraint: self._free,
            **self.masks.handlers,
        }

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return bool(self._results)

    @property
    def is_waiting(self) -> bool:
        """Tell whether something is being compiled."""
        return bool(self._pending)

    def advance(self) -> None:
        """Take up what the compiler has done. Nobody is told about a run that is closed, or about what was freed."""
        while self._results:
            constraint_id, result = self._results.popleft()
            account = self._pending.pop(constraint_id, None)
            if account is None or self._accounts.get(account.run_id) is not account:
                continue
            if isinstance(result, EngineError):
                self._demands.events.append(Failed(constraint_id, result))
            else:
                account.constraints[constraint_id] = result
                self._demands.events.append(Done(constraint_id))

    def begin(
        self,
        account: RunAccount,
        constraint_id: int,
        *,
        allowed: Words | None = None,
        takes_forced: bool = True,
        on_mask: Callable[[], None] | None = None,
    ) -> Matcher:
        """Begin to follow a constraint of a run, by the arguments of `Matcher`.

        Raises CommandError if there is no such constraint, or the tenant has too many matchers.
        """
        prototype = self._prototype(account, constraint_id)
        self.require_matcher(account)
        assert self._compiler is not None  # or there would be no constraint
        eos_words = self._compiler.index.eos_words
        matcher = Matcher(prototype, eos_words, self._pool, allowed=allowed, takes_forced=takes_forced, on_mask=on_mask)
        account.share.matchers.add(matcher)
        return matcher

    def require_matcher(self, account: RunAccount) -> None:
        """Raise CommandError if the tenant cannot have another matcher: each may take megabytes."""
        num_held = len(account.share.matchers)
        if num_held >= MOST_MATCHERS:
            message = f"{num_held:,} generations and matchers of the tenant follow constraints; {MOST_MATCHERS:,} may"
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, "Wait for some of them to end.")

    def check_integrity(self) -> None:
        """Raise AssertionError unless what is compiled and what is being compiled are different things."""
        for constraint_id, account in self._pending.items():
            assert constraint_id not in account.constraints, f"constraint {constraint_id} is compiled twice"

    def close(self) -> None:
        """End the threads. Idempotent."""
        self._pool.shutdown()
        if self._compiler is not None:
            self._compiler.close()

    def _compile(self, command: CompileConstraint, arrived_ns: int) -> None:
        account = self._account_for(command.run_id, command.constraint_id)
        constraint_id = command.constraint_id
        self._pending[constraint_id] = account

        def done(result: Result) -> None:
            self._results.append((constraint_id, result))
            self.on_result()

        assert self._compiler is not None
        self._compiler.submit(account.tenant, command.kind, command.text, done)

    def _combine(self, command: CombineConstraints, arrived_ns: int) -> None:
        account = self._account_for(command.run_id, command.constraint_id)
        parts = [self._prototype(account, part_id) for part_id in command.part_ids]
        num_parts = sum(part.num_parts for part in parts)
        if not 1 <= num_parts <= MOST_PARTS:
            message = f"a combination of {num_parts:,} constraints; 1 to {MOST_PARTS} can be put together"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message, "Put some of them into one grammar.")
        kind = AllOf if command.combination is Combination.ALL_OF else AnyOf
        account.constraints[command.constraint_id] = kind(parts)
        self._demands.events.append(Done(command.constraint_id))

    def _constrain_to_mask(self, command: ConstrainToMask, arrived_ns: int) -> None:
        account = self._account_for(command.run_id, command.constraint_id)
        mask = self.masks.get_sampled(account, command.mask_id)
        assert self._compiler is not None
        account.constraints[command.constraint_id] = TokenSetFollower(mask, self._compiler.index.eos_words)
        self._demands.events.append(Done(command.constraint_id))

    def _free(self, command: FreeConstraint, arrived_ns: int) -> None:
        self._pending.pop(command.constraint_id, None)
        account = self._accounts.get(command.run_id)
        if account is not None:
            account.constraints.pop(command.constraint_id, None)

    def _prototype(self, account: RunAccount, constraint_id: int) -> Follower:
        prototype = account.constraints.get(constraint_id)
        if prototype is None:
            if constraint_id in self._pending:
                message = f"constraint {constraint_id} is being compiled"
                raise CommandError(ErrorCode.UNAVAILABLE, message, "Wait until that is done.")
            raise CommandError(ErrorCode.NOT_FOUND, f"run {account.run_id} has no constraint {constraint_id}")
        return prototype

    def _account_for(self, run_id: int, constraint_id: int) -> RunAccount:
        """Return the account of a run that may have another constraint, by that id."""
        if self._compiler is None:
            raise CommandError(ErrorCode.UNSUPPORTED, "constraints are not possible with this model")
        account = self._accounts.get(run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {run_id}")
        if constraint_id in account.constraints or constraint_id in self._pending:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a constraint {constraint_id} already")
        num_held = len(account.constraints) + sum(each is account for each in self._pending.values())
        if num_held >= MOST_OF_A_RUN:
            message = f"the run holds {num_held:,} constraints; {MOST_OF_A_RUN:,} are allowed"
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, "Drop some of them.")
        return account
