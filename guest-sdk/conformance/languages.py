"""The programs of the suite, one for each language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class ToolsMissing(Exception):
    """What builds the program is not there: says what to install."""


@dataclass(frozen=True, slots=True)
class Built:
    """What a host loads: the program with the cases, and the controller that some of them name."""

    program: Any
    controller: Any


def python() -> Built:
    """Source, which the runner takes as it is."""
    return Built(FOLDER / "python", FOLDER / "python" / "controller.py")


LANGUAGES: dict[str, Callable[[], Built]] = {"python": python}
"""How the program of each language is built. Raises `ToolsMissing`."""

NOT_THERE: dict[str, dict[str, str]] = {"python": {}}
"""Cases that the program of a language does not have, and why."""
