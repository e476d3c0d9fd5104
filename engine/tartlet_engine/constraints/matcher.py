"""One generation's way through its constraint: which tokens are forced, and the mask of what may come next.

The library works on a pool of threads, and lets go of the interpreter while it does: a mask is computed while the
forward pass of its position runs. The engine's thread says where to go, and takes what has come of it. What is forced
it finds out by itself, when it asks, as long as that is quick: some 10 us, where handing it over takes a hundred.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartlet_engine.constraints.follower import Follower
from tartlet_engine.constraints.pool import MaskPool
from tartlet_engine.constraints.vocabulary import Words, holds

# A matcher whose moves have taken no longer, of the processor's time, is moved by whoever asks what is forced.
QUICK_NS = 500_000


@dataclass(slots=True)
class _Move:
    """Go back, then on. None of it is known to be allowed."""

    num_back: int
    token_ids: tuple[int, ...]


@dataclass(slots=True)
class _Fork:
    """Who begins at this place, before `num_back` tokens; None: before those that are about to be forced."""

    matcher: Matcher
    num_back: int | None


class Matcher:
    """Follows one generation, or a program. Public methods are for the engine's thread, and only `wait_*` wait.

    After each move, first what is forced is known, then the mask, which is that of the position after what is forced.
    Moves may follow each other at once: only what comes of the last one is computed.
    """

    def __init__(
        self,
        prototype: Follower | None,
        eos_words: Words,
        pool: MaskPool,
        *,
        allowed: Words | None = None,
        takes_forced: bool = True,
        on_mask: Callable[[], None] | None = None,
    ) -> None:
        """Begin where `prototype` is, and find out what comes first.

        Args:
            prototype: is copied; None: `fork` of another matcher brings it.
            eos_words: the eos tokens.
            pool: where it works.
            allowed: nothing else is allowed, whatever the constraint says.
            takes_forced: go on by what is forced; if not, the mask is that of the position before it.
            on_mask: called on the pool whenever a mask is there.
        """
        self._follower = prototype
        self._is_copied = False
        self._eos_words = eos_words
        self._pool = pool
        self._allowed = allowed
        self._takes_forced = takes_forced
        self._on_mask = on_mask
        self._words = np.zeros(len(eos_words), dtype=np.uint32)
        self._has_forced = threading.Event()  # `_forced`, `is_complete` and `problem` are of the new position
        self._has_mask = threading.Event()
        self._lock = threading.Lock()  # guards what follows
        self._orders: deque[_Move | _Fork] = deque()
        self._is_working = False
        self._is_quick: bool | None = None  # None: not known yet
        self._forced: list[int] = []  # gone through if `takes_forced`, and not taken yet
        self._work_ns = 0
        self.may_end = False  # what it has gone through is a whole text of the constraint
        self.is_complete = False  # and nothing may follow: the generation ends
        self.problem: str | None = None  # why it cannot go on
        if prototype is not None:
            self.move(0, ())

    def advance(self, *token_ids: int) -> None:
        """Go on by tokens that were sampled or spliced in, in the background."""
        self.move(0, token_ids)

    def rollback(self, num_tokens: int) -> None:
        """Go back over the last tokens, those that were forced and taken included, in the background.

        A token that was not allowed is forgiven so; what the library's own limits have ended is not.
        """
        self.move(num_tokens, ())

    def move(self, num_back: int, token_ids: Sequence[int]) -> None:
        """Go back over so many tokens, then on by others, in the background: a splice.

        What was forced and has not been taken is forgotten.
        """
        with self._lock:
            self._has_forced.clear()
            self._has_mask.clear()
            if self._takes_forced:
                num_back += len(self._forced)
            self._forced = []
            self._orders.append(_Move(num_back, tuple(token_ids)))
            if not (self._is_quick and self._takes_forced):
                self._start_work()

    def fork(self, *, on_mask: Callable[[], None] | None = None) -> Matcher:
        """Return a matcher at the same place, before what is forced and not taken, which goes its own way.

        `on_mask` is the new one's; it also may not have a mask for a while.
        """
        child = Matcher(
            None, self._eos_words, self._pool, allowed=self._allowed, takes_forced=self._takes_forced, on_mask=on_mask
        )
        with self._lock:
            num_back = len(self._forced) if self._takes_forced else 0
            self._orders.append(_Fork(child, num_back if self._has_forced.is_set() else None))
            self._start_work()
        return child

    def wait_forced(self, timeout_s: float) -> bool:
        """Find out what is forced, if that is quick, or wait until it is known. Tells whether it is."""
        if self._has_forced.is_set():
            return True
        with self._lock:
            is_left_to_us = not self._is_working and self._follower is not None
            self._is_working = self._is_working or is_left_to_us
        if is_left_to_us:
            self._work_forced()
        return self._has_forced.is_set() or (timeout_s > 0 and self._has_forced.wait(timeout_s))

    def wait_mask(self, timeout_s: float) -> bool:
        """Wait until the mask is there, or a reason why there is none. Tells whether it is."""
        if not self._has_mask.is_set():
            self.wait_forced(0)  # so that somebody computes it
        return self._has_mask.is_set() or (timeout_s > 0 and self._has_mask.wait(timeout_s))

    def take_forced(self) -> list[int]:
        """Return, once, the tokens that come next whatever is sampled; the mask is that of the position after them.

        For after `wait_forced` has told that they are known.
        """
        with self._lock:
            forced, self._forced = self._forced, []
        return forced

    def take_work_ns(self) -> int:
        """Return, once, the processor's time that following has taken, in ns."""
        with self._lock:
            work_ns, self._work_ns = self._work_ns, 0
        return work_ns

    @property
    def mask(self) -> NDArray[np.uint32]:
        """The tokens allowed next: uint32[ceil(V / 32)], bit `id % 32` of word `id // 32`. Valid until a move."""
        return self._words

    def _start_work(self) -> None:
        if not self._is_working and self._follower is not None:
            self._is_working = True
            self._pool.submit(self._work_forced, is_urgent=True)

    def _begin(self, follower: Follower) -> None:
        """Begin at a place that a fork has copied. On the pool."""
        with self._lock:
            self._follower, self._is_copied = follower, True
            self._orders.appendleft(_Move(0, ()))
            self._start_work()

    # ---- On one thread at a time, of the pool or the engine's ----

    def _work_forced(self) -> None:
        """Make the moves, find out what is forced, then have the mask computed after what others wait for."""
        began = time.thread_time_ns()
        try:
            is_moved = self._make_moves()
        except BaseException as error:
            self._break(f"{type(error).__name__}: {error}")
            return
        finally:
            took_ns = time.thread_time_ns() - began
            with self._lock:
                self._work_ns += took_ns
                self._is_quick = took_ns < QUICK_NS and self._is_quick is not False
        if is_moved:
            self._pool.submit(self._work_mask, is_urgent=False)

    def _make_moves(self) -> bool:
        """Carry out all orders, and find out what is forced then. Tells whether a mask is wanted."""
        assert self._follower is not None
        if not self._is_copied:
            self._follower, self._is_copied = self._follower.copy(), True
        follower = self._follower
        while True:
            with self._lock:
                order = self._orders[0] if self._orders else None
                if order is None and self._has_forced.is_set():
                    self._is_working = not self._has_mask.is_set()
                    return self._is_working
            if order is None:
                self._find_forced(follower)
                continue
            _carry_out(order, follower)
            with self._lock:
                self._orders.popleft()

    def _find_forced(self, follower: Follower) -> None:
        """Find out what is forced, and let it be known unless another move has come."""
        forced = follower.forced()
        if self._allowed is not None:
            refused = (i for i, token_id in enumerate(forced) if not holds(self._allowed, token_id))
            forced = forced[: next(refused, len(forced))]
        if forced and self._takes_forced:
            follower.consume(forced)
        may_end, is_complete, problem = follower.may_end, follower.is_complete, follower.problem
        with self._lock:
            if not self._has_moves():
                self._forced = forced
                self.may_end, self.is_complete, self.problem = may_end, is_complete, problem
                for fork in self._orders:
                    assert isinstance(fork, _Fork)
                    if fork.num_back is None and self._takes_forced:
                        fork.num_back = len(forced)
                self._has_forced.set()
                return
        if forced and self._takes_forced:
            follower.rollback(len(forced))

    def _has_moves(self) -> bool:
        return any(isinstance(order, _Move) for order in self._orders)

    def _work_mask(self) -> None:
        """Compute the mask, unless another move has come; in that case begin again."""
        began = time.thread_time_ns()
        try:
            is_there = self._compute_mask()
        except BaseException as error:
            self._break(f"{type(error).__name__}: {error}")
            return
        finally:
            with self._lock:
                self._work_ns += time.thread_time_ns() - began
        if is_there and self._on_mask is not None:
            self._on_mask()

    def _compute_mask(self) -> bool:
        """Tells whether the mask is there; not if another move has come."""
        follower = self._follower
        assert follower is not None
        with self._lock:
            has_news = self._has_moves()
        if not has_news:
            self._fill_mask(follower)
        with self._lock:
            is_there = not self._has_moves()
            if is_there:
                self._note_mask(follower)
                self._has_mask.set()
            self._is_working = bool(self._orders)
            if self._is_working:
                self._pool.submit(self._work_forced, is_urgent=True)
        return is_there

    def _fill_mask(self, follower: Follower) -> None:
        if self.problem is not None:
            self._words[:] = 0
        elif self.is_complete:
            self._words[:] = self._eos_words
        else:
            follower.fill_mask(self._words)
        if self._allowed is not None:
            self._words &= self._allowed
        if self.problem is None and not self.is_complete and not self._leaves_any():
            # Nothing of what is forced is allowed as the model writes it: it may be in other tokens.
            follower.fill_mask(self._words, all_spellings=True)
            if self._allowed is not None:
                self._words &= self._allowed

    def _note_mask(self, follower: Follower) -> None:
        """Note what the mask tells: nothing may follow, or nothing at all is allowed."""
        if self.problem is None and not self.is_complete and not self._leaves_any():
            self.may_end = self.is_complete = follower.may_end
            if not self.is_complete:
                self.problem = follower.problem or "no token is allowed"

    def _leaves_any(self) -> bool:
        """Tell whether anything but an end is allowed."""
        return bool((self._words & ~self._eos_words).any())

    def _break(self, problem: str) -> None:
        """Let everybody know of an error of our own, who waits for a fork of this included."""
        with self._lock:
            forks = [order for order in self._orders if isinstance(order, _Fork)]
            self._orders.clear()
            self._is_working = False
            self.problem = problem
            self._has_forced.set()
            self._has_mask.set()
        for fork in forks:
            fork.matcher._break(problem)
        if self._on_mask is not None:
            self._on_mask()


def _carry_out(order: _Move | _Fork, follower: Follower) -> None:
    if isinstance(order, _Fork):
        copy = follower.copy()
        copy.rollback(order.num_back or 0)
        order.matcher._begin(copy)
        return
    if order.num_back:
        follower.rollback(order.num_back)
    if order.token_ids:
        follower.consume(order.token_ids)
