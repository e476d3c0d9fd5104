"""What all benchmarks are told: how often to measure, and on which model."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure."""

    is_quick: bool = False
    """Only see that everything works: the tiny model, small numbers, no waiting for a quiet machine."""
    threads: int = os.cpu_count() or 1
    """CPU threads of the model, in every system that is compared."""
    patience: int = 2
    """Busy rounds are repeated, up to this many times the number of rounds wanted; 0 takes them as they are."""

    @property
    def model(self) -> str:
        """The model to load."""
        return "tiny" if self.is_quick else "smollm2-135m-instruct"

    def scaled(self, full: int, quick: int) -> int:
        """One number for real measurements, another for the quick check."""
        return quick if self.is_quick else full
