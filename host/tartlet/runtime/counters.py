"""What a run has used, as it is counted while it runs."""

from __future__ import annotations

import time

from tartlet.errors import LimitExceededError
from tartlet_engine.api import PagesHeld, Usage

EVENT_BYTES = 64
"""Charged for a log line, or for a variable that is told, on top of its text: what the host needs to keep one."""


class Counters:
    """Written on the executor's thread, read anywhere."""

    def __init__(self, max_output_bytes: int | None) -> None:
        self.started_ns = time.monotonic_ns()
        self.ended_ns: int | None = None
        self.first_token_ns: int | None = None
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generated_tokens = 0
        self.shared_pages = 0
        self.output_bytes = 0
        self.generations = 0
        self.forks = 0
        self.num_passes = 0  # forward passes that the run has now
        self.longest_step_ns = 0
        self._pages_held = PagesHeld(0, 0, 0, 0)  # what the engine told last
        self._max_output_bytes = max_output_bytes
        self._num_generating = 0
        self._generating_since_ns = 0
        self._generating_ns = 0

    @property
    def wall_ns(self) -> int:
        """From the start to the end, or to now."""
        return (self.ended_ns or time.monotonic_ns()) - self.started_ns

    @property
    def page_ns(self) -> int:
        """Pages of the KV cache times nanoseconds, to the end or to now."""
        told = self._pages_held  # read once: it is replaced, never changed
        now_ns = self.ended_ns or time.monotonic_ns()
        return told.page_ns + told.num_pages * max(0, now_ns - told.at_ns)

    @property
    def tokens_per_second(self) -> float | None:
        """Generated tokens over the time in which at least one generation was going on."""
        total_ns = self._generating_ns
        if self._num_generating:
            total_ns += (self.ended_ns or time.monotonic_ns()) - self._generating_since_ns
        return self.generated_tokens * 1e9 / total_ns if total_ns and self.generated_tokens else None

    def add_output(self, num_bytes: int) -> None:
        """Count output. Raises LimitExceededError when it is more than the run may write."""
        self.output_bytes += num_bytes
        if self._max_output_bytes is not None and self.output_bytes > self._max_output_bytes:
            raise LimitExceededError(
                "output_limit", limit="max_output_bytes", used=self.output_bytes, allowed=self._max_output_bytes
            )

    def begin_generation(self, num_prompt: int) -> None:
        """Count a generation that starts on a context of `num_prompt` tokens."""
        self.generations += 1
        self.prompt_tokens += num_prompt
        if not self._num_generating:
            self._generating_since_ns = time.monotonic_ns()
        self._num_generating += 1

    def add_tokens(self, num_tokens: int, at_ns: int) -> None:
        """Count generated tokens that came at a time of `time.monotonic_ns`."""
        self.generated_tokens += num_tokens
        if self.first_token_ns is None:
            self.first_token_ns = at_ns - self.started_ns

    def note_pages(self, told: PagesHeld) -> None:
        """Note how many pages the engine holds for the run now. Its clock is this machine's, and so the same."""
        self._pages_held = told

    def note_step(self, waited_ns: int) -> None:
        """Note how long the program took for an answer to a step."""
        self.longest_step_ns = max(self.longest_step_ns, waited_ns)

    def end_generation(self, usage: Usage | None) -> None:
        """Count a generation that ended; without usage if it failed."""
        self._num_generating -= 1
        if not self._num_generating:
            self._generating_ns += time.monotonic_ns() - self._generating_since_ns
        if usage is not None:
            self.cached_tokens += usage.cached_tokens
            self.shared_pages += usage.shared_pages
