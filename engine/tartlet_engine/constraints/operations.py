"""The commands that concern constraints, on the engine's thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import CompileConstraint, Done, EngineError, ErrorCode, Failed, FreeConstraint
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.compiler import ConstraintCompiler, Result
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.demands import Demands

MOST_OF_A_RUN = 1024  # constraints, those being compiled included


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
        self._vocabulary_size = vocabulary_size
        self._accounts = accounts
        self._demands = demands
        self._pool = ThreadPoolExecutor(max(2, (os.cpu_count() or 1) // 2), "tartlet-masks")
        self._pending: dict[int, RunAccount] = {}  # by constraint id
        self._results: deque[tuple[int, Result]] = deque()  # filled by the compiler, for this thread
        self.on_result: Callable[[], None] = lambda: None  # called on the compiler's thread
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            CompileConstraint: self._compile,
            FreeConstraint: self._free,
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

    def begin(self, account: RunAccount, constraint_id: int) -> Matcher:
        """Begin to follow a constraint of a run. Raises CommandError if there is none."""
        prototype = account.constraints.get(constraint_id)
        if prototype is None:
            if constraint_id in self._pending:
                message = f"constraint {constraint_id} is being compiled"
                raise CommandError(ErrorCode.UNAVAILABLE, message, "Wait until that is done.")
            raise CommandError(ErrorCode.NOT_FOUND, f"run {account.run_id} has no constraint {constraint_id}")
        return Matcher(prototype, self._vocabulary_size, self._pool)

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
        if self._compiler is None:
            raise CommandError(ErrorCode.UNSUPPORTED, "constraints are not possible with this model")
        account = self._account(command.run_id)
        constraint_id = command.constraint_id
        if constraint_id in account.constraints or constraint_id in self._pending:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a constraint {constraint_id} already")
        num_held = len(account.constraints) + sum(each is account for each in self._pending.values())
        if num_held >= MOST_OF_A_RUN:
            message = f"the run holds {num_held:,} constraints; {MOST_OF_A_RUN:,} are allowed"
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, "Drop some of them.")
        self._pending[constraint_id] = account

        def done(result: Result) -> None:
            self._results.append((constraint_id, result))
            self.on_result()

        self._compiler.submit(account.tenant, command.kind, command.text, done)

    def _free(self, command: FreeConstraint, arrived_ns: int) -> None:
        self._pending.pop(command.constraint_id, None)
        account = self._accounts.get(command.run_id)
        if account is not None:
            account.constraints.pop(command.constraint_id, None)

    def _account(self, run_id: int) -> RunAccount:
        account = self._accounts.get(run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {run_id}")
        return account
