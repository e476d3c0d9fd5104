"""How a fiber's end reads to the caller."""

from __future__ import annotations

import re
from typing import Any

from tartlet.errors import GuestError, GuestTrapError, LimitExceededError, TartletError, memory_limit_error
from tartlet.limits import Limits
from tartlet.runtime.channel import Outcome

MAX_LAST_WORDS = 4000
"""Characters of what a program said before it trapped that its error repeats."""
_OUT_OF_MEMORY = re.compile(r"^MemoryError\b.*\Z", re.MULTILINE)


def read_outcome(result: Any, limits: Limits, last_words: str | None = None) -> Outcome:
    """How the run ended.

    Args:
        result: What the fiber ended with: the lifted `result<string, string>` of `run`, or an error.
        limits: The run's.
        last_words: If the program logged an error and has called nothing since, that. Languages without exceptions
            tell so why they abort: the message of a panic, an assertion that does not hold.
    """
    said = (last_words or "")[:MAX_LAST_WORDS]
    if said and type(result) is GuestTrapError:
        return GuestTrapError(f"{said}\n{result.message}", hint=result.hint)
    if said and isinstance(result, LimitExceededError) and result.code == "memory_limit":
        _, _, details = result.message.partition("\n")
        return LimitExceededError(
            result.code, limit=result.limit, used=result.used, allowed=result.allowed, details=f"{said}\n{details}"
        )
    if isinstance(result, TartletError):
        return result
    is_ok, text = result
    if is_ok:
        return str(text)
    if limits.max_memory_bytes is not None and _OUT_OF_MEMORY.search(text.rstrip()):
        return memory_limit_error(used=limits.max_memory_bytes, allowed=limits.max_memory_bytes, details=text.rstrip())
    return GuestError(text.rstrip() or "the program failed without saying why")
