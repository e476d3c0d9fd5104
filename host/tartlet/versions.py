"""How versions of a program are ordered: `name@version`, number by number."""

from __future__ import annotations

import re


def version_key(name: str) -> list[tuple[int, str]]:
    """What orders the versions of a program: their numbers, then their texts. No version comes before any."""
    return [(int(part) if part.isdecimal() else -1, part) for part in re.split(r"[.+-]", name.partition("@")[2])]
