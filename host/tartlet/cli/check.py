"""`tartlet check`: what a component imports and exports, how large it is, and whether this host would run it."""

from __future__ import annotations


def check() -> None:
    """Placeholder."""
    raise NotImplementedError
