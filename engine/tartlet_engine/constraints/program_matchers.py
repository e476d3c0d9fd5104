"""Matchers that programs move themselves, without a generation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import ErrorCode, ForkMatcher, FreeMatcher, MatcherMoved, MoveMatcher, OpenMatcher
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.matcher import Matcher
from tartlet_engine.constraints.operations import ConstraintOperations
from tartlet_engine.demands import Demands
from tartlet_engine.fairness import CONSTRAINT_COST
from tartlet_engine.validation import check_token_ids


@dataclass(slots=True)
class ProgramMatcher:
    """A matcher, how many tokens it has gone through, and in how many moves."""

    account: RunAccount
    matcher: Matcher
    length: int
    num_moves: int = 0


class ProgramMatchers:
    """The matchers of all programs. All but `on_result` is for the engine's thread."""

    def __init__(
        self,
        constraints: ConstraintOperations,
        accounts: dict[int, RunAccount],
        demands: Demands,
        *,
        vocabulary_size: int,
        max_tokens: int,
    ) -> None:
        """Follow constraints of the runs of `accounts`, over at most `max_tokens` each."""
        self._constraints = constraints
        self._accounts = accounts
        self._demands = demands
        self._vocabulary_size = vocabulary_size
        self._max_tokens = max_tokens
        self._matchers: dict[int, ProgramMatcher] = {}
        self._moving: set[int] = set()  # whose answer is due
        self._arrived: deque[int] = deque()  # filled on the pool: whose mask is there
        self.on_result: Callable[[], None] = lambda: None  # called on the pool
        self.handlers: dict[type, Callable[[Any, int], None]] = {
            OpenMatcher: self._open,
            MoveMatcher: self._move,
            ForkMatcher: self._fork,
            FreeMatcher: self._free,
        }

    @property
    def has_work(self) -> bool:
        """Tell whether `advance` would do something."""
        return bool(self._arrived)

    @property
    def is_waiting(self) -> bool:
        """Tell whether some matcher has not arrived."""
        return bool(self._moving)

    def advance(self) -> None:
        """Tell of the matchers that have arrived, but not of those that were moved on or freed meanwhile."""
        while self._arrived:
            matcher_id = self._arrived.popleft()
            following = self._matchers.get(matcher_id)
            if following is None or matcher_id not in self._moving or not following.matcher.wait_mask(0):
                continue
            self._moving.discard(matcher_id)
            matcher = following.matcher
            following.account.share.charge(matcher.take_work_ns() * CONSTRAINT_COST)
            self._demands.events.append(
                MatcherMoved(
                    matcher_id,
                    following.num_moves,
                    matcher.mask.tobytes(),
                    tuple(matcher.take_forced()),
                    matcher.may_end,
                    matcher.is_complete,
                    matcher.problem,
                )
            )

    def close_run(self, account: RunAccount) -> None:
        """Free all matchers of a run."""
        for matcher_id in [each for each, following in self._matchers.items() if following.account is account]:
            self._drop(matcher_id)

    def check_integrity(self) -> None:
        """Raise AssertionError if a matcher outlives its run."""
        for matcher_id, following in self._matchers.items():
            account = following.account
            assert self._accounts.get(account.run_id) is account, f"matcher {matcher_id} outlives its run"
        assert self._moving <= self._matchers.keys()

    def _open(self, command: OpenMatcher, arrived_ns: int) -> None:
        account = self._accounts.get(command.run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {command.run_id}")
        self._require_new(command.matcher_id)
        on_mask = self._arrival(command.matcher_id)
        matcher = self._constraints.begin(account, command.constraint_id, takes_forced=False, on_mask=on_mask)
        self._add(command.matcher_id, ProgramMatcher(account, matcher, 0))

    def _move(self, command: MoveMatcher, arrived_ns: int) -> None:
        following = self._get(command.run_id, command.matcher_id)
        check_token_ids("token_ids", command.token_ids, self._vocabulary_size)
        if not 0 <= command.num_back <= following.length:
            message = (
                f"the matcher cannot go back {command.num_back:,} tokens; it has gone through {following.length:,}"
            )
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        length = following.length - command.num_back + len(command.token_ids)
        if length > self._max_tokens:
            message = f"a matcher goes through at most {self._max_tokens:,} tokens, the model's context length"
            raise CommandError(ErrorCode.CONTEXT_OVERFLOW, message)
        following.length = length
        following.num_moves += 1
        self._moving.add(command.matcher_id)
        following.matcher.move(command.num_back, command.token_ids)

    def _fork(self, command: ForkMatcher, arrived_ns: int) -> None:
        following = self._get(command.run_id, command.matcher_id)
        self._require_new(command.child_id)
        self._constraints.require_matcher(following.account)
        child = following.matcher.fork(on_mask=self._arrival(command.child_id))
        following.account.share.matchers.add(child)
        self._add(command.child_id, ProgramMatcher(following.account, child, following.length))

    def _free(self, command: FreeMatcher, arrived_ns: int) -> None:
        following = self._matchers.get(command.matcher_id)
        if following is not None and following.account.run_id == command.run_id:
            self._drop(command.matcher_id)

    def _add(self, matcher_id: int, following: ProgramMatcher) -> None:
        self._matchers[matcher_id] = following
        self._moving.add(matcher_id)

    def _drop(self, matcher_id: int) -> None:
        del self._matchers[matcher_id]
        self._moving.discard(matcher_id)

    def _get(self, run_id: int, matcher_id: int) -> ProgramMatcher:
        following = self._matchers.get(matcher_id)
        if following is None or following.account.run_id != run_id:
            raise CommandError(ErrorCode.NOT_FOUND, f"run {run_id} has no matcher {matcher_id}")
        return following

    def _require_new(self, matcher_id: int) -> None:
        if matcher_id in self._matchers:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a matcher {matcher_id} already")

    def _arrival(self, matcher_id: int) -> Callable[[], None]:
        def arrive() -> None:
            self._arrived.append(matcher_id)
            self.on_result()

        return arrive
