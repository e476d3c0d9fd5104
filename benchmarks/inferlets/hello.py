"""A program of the usual size and kind, that tells when its first line ran."""

import time

FIRST_LINE_NS = time.monotonic_ns()

from tartlet_sdk import inferlet  # noqa: E402


@inferlet
def hello(name: str = "world") -> int:
    """Greet somebody."""
    print(f"Hello, {name}!")
    return FIRST_LINE_NS
