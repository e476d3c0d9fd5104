"""How a fiber's end reads to the caller."""

from __future__ import annotations

import re
from typing import Any

from tartlet.errors import GuestError, TartletError, memory_limit_error
from tartlet.limits import Limits
from tartlet.runtime.channel import Outcome

_OUT_OF_MEMORY = re.compile(r"^MemoryError\b.*\Z", re.MULTILINE)


def read_outcome(result: Any, limits: Limits) -> Outcome:
    """The outcome, given what the fiber ended with: the lifted `result<string, string>` of `run`, or an error."""
    if isinstance(result, TartletError):
        return result
    is_ok, text = result
    if is_ok:
        return str(text)
    if limits.max_memory_bytes is not None and _OUT_OF_MEMORY.search(text.rstrip()):
        return memory_limit_error(used=limits.max_memory_bytes, allowed=limits.max_memory_bytes, details=text.rstrip())
    return GuestError(text.rstrip() or "the program failed without saying why")
