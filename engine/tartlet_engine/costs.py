"""What it costs, in seconds, to compute a token and to copy a page's bytes: measured as the engine runs.

By that it is decided how long a step may be (`step_budget.py`), and whether pages that have to leave the KV cache are
swapped or computed again (`pager.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

# How much a new measurement counts against those before.
_WEIGHT = 0.2
# Steps of fewer tokens say little about what a token of a long prompt costs: reading the weights dominates.
_MIN_STEP_TOKENS = 32


@dataclass(slots=True)
class Costs:
    """Running averages, in seconds. Until they are measured, those of a small model on a CPU: computing is slow."""

    seconds_per_byte: float = 1e-9  # one way
    seconds_per_token: float = 5e-4

    def is_swap_cheaper(self, num_bytes: int, num_tokens: int) -> bool:
        """Tell whether copying so many bytes out and in takes less time than computing so many tokens again."""
        return 2 * num_bytes * self.seconds_per_byte < num_tokens * self.seconds_per_token

    def note_copy(self, num_bytes: int, seconds: float) -> None:
        """Take in how long it took to copy pages one way."""
        if num_bytes > 0:
            self.seconds_per_byte += _WEIGHT * (seconds / num_bytes - self.seconds_per_byte)

    def note_step(self, num_tokens: int, seconds: float) -> None:
        """Take in how long a forward pass took."""
        if num_tokens >= _MIN_STEP_TOKENS:
            self.seconds_per_token += _WEIGHT * (seconds / num_tokens - self.seconds_per_token)


@dataclass(slots=True)
class FixedCosts(Costs):
    """Costs that nothing changes, for whoever must know beforehand what will be done."""

    def note_copy(self, num_bytes: int, seconds: float) -> None:
        """Ignore the measurement."""

    def note_step(self, num_tokens: int, seconds: float) -> None:
        """Ignore the measurement."""
