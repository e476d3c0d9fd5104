"""What a caller hears from a run: `async for event in run`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LogLevel: TypeAlias = Literal["trace", "debug", "info", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Output:
    """Text that the program printed. Pieces that a slow caller has not taken yet come merged."""

    text: str


@dataclass(frozen=True, slots=True)
class Log:
    """One line of the program's log."""

    level: LogLevel
    message: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the run that is written: its name, its new value, and how many times it has been written."""

    name: str
    value: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    """What a run has used so far; once it has ended, in all. As text, it is one line of figures."""

    prompt_tokens: int = 0
    """Tokens in the contexts when generations began, summed over the generations."""
    cached_tokens: int = 0
    """Of these, tokens whose keys and values were there already."""
    generated_tokens: int = 0
    shared_pages: int = 0
    """KV pages that the generations' contexts shared with others, summed over the generations."""
    page_seconds: float = 0.0
    """Pages of the KV cache that its contexts held, times the seconds for which they did."""
    first_token_ms: float | None = None
    """From the start of the run to the first generated token of all."""
    tokens_per_second: float | None = None
    """Generated tokens over the time in which at least one generation was going on."""
    cpu_ms: float = 0.0
    """Time spent running guest code."""
    wall_ms: float = 0.0
    host_calls: int = 0
    output_bytes: int = 0
    generations: int = 0
    forks: int = 0

    def __str__(self) -> str:
        if not self.generated_tokens and not self.generations:
            return f"{self.wall_ms / 1000:,.2f} s"
        parts = [
            f"{self.generated_tokens:,} tokens generated",
            f"{self.prompt_tokens:,} prompt tokens ({self.cached_tokens:,} cached)",
            f"{self.shared_pages:,} pages shared by {self.forks:,} forks",
        ]
        if self.first_token_ms is not None:
            parts.append(f"first token after {self.first_token_ms:,.0f} ms")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.1f} tokens/s")
        return ", ".join([*parts, f"{self.wall_ms / 1000:,.2f} s"])


RunEvent: TypeAlias = Output | Log | Variable | RunUsage
