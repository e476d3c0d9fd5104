"""One generation's way through its constraint: which tokens are forced, and the mask of what may come next.

The library works on a pool of threads, and lets go of the interpreter while it does: a mask is computed while the
forward pass of its position runs. The engine's thread starts that, and takes what has come of it.
"""

from __future__ import annotations

import threading
from concurrent.futures import Executor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tartlet_engine.constraints.grammars import message_of

if TYPE_CHECKING:
    from llguidance import LLMatcher


class Matcher:
    """Follows one generation. All methods are for the engine's thread; only `_work` runs on the pool.

    After `advance`, first what is forced is known, then the mask.
    """

    def __init__(self, prototype: LLMatcher, vocabulary_size: int, pool: Executor) -> None:
        """Begin at the beginning of a constraint, and find out what comes first."""
        self._matcher = prototype.deep_copy()
        self._pool = pool
        self._words = np.zeros(-(-vocabulary_size // 32), dtype=np.uint32)
        self._forced: list[int] = []
        self._has_forced = threading.Event()  # `_forced`, `is_complete` and `problem` are of the new position
        self._has_mask = threading.Event()
        self.is_complete = False  # nothing may follow: the generation ends
        self.problem: str | None = None  # why it cannot go on
        self.advance(None)

    def advance(self, token_id: int | None) -> None:
        """Go on by a sampled token, in the background."""
        self._has_forced.clear()
        self._has_mask.clear()
        self._pool.submit(self._work, token_id)

    def wait_forced(self, timeout_s: float) -> bool:
        """Wait until it is known what is forced. Tells whether it is."""
        return self._has_forced.wait(timeout_s)

    def wait_mask(self, timeout_s: float) -> bool:
        """Wait until the mask is there, or a reason why there is none. Tells whether it is."""
        return self._has_mask.wait(timeout_s)

    def take_forced(self) -> list[int]:
        """Return, once, the tokens that come next whatever is sampled; the mask is that of the position after them."""
        forced, self._forced = self._forced, []
        return forced

    @property
    def mask(self) -> NDArray[np.uint32]:
        """The tokens allowed next: uint32[ceil(V / 32)], bit `id % 32` of word `id // 32`. Valid until `advance`."""
        return self._words

    def _work(self, token_id: int | None) -> None:
        """Go on, then compute the mask. On the pool."""
        try:
            self._follow(token_id)
            self._has_forced.set()
            if self.problem is None and not self.is_complete:
                self._matcher.unsafe_compute_mask_ptr(self._words.ctypes.data, self._words.nbytes)
                self._note_state()
                if not self._words.any():
                    self.problem = self.problem or "no token is allowed"
        except BaseException as error:
            self.problem = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._has_forced.set()
            self._has_mask.set()

    def _follow(self, token_id: int | None) -> None:
        if token_id is not None:
            self._matcher.consume_token(token_id)
        if not self._matcher.is_stopped():
            self._forced = self._matcher.compute_ff_tokens()
            if self._forced:
                self._matcher.consume_tokens(self._forced)
        self._note_state()

    def _note_state(self) -> None:
        if self._matcher.is_error():
            self.problem = message_of(self._matcher)
        elif self._matcher.is_stopped():
            self.is_complete = self._matcher.is_accepting()
            if not self.is_complete:
                self.problem = f"no token is allowed ({self._matcher.stop_reason()})"
