"""The ids in commands: whoever is connected may name its own, and no others."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, get_args

import msgspec

from tartlet_engine.api import Command


def foreign_id(command: Command, own: range) -> int | None:
    """An id that the command names and that is not in `own`; None if there is none.

    Constraints and masks that are named within an answer or a generation are looked for among those of its run alone,
    which the engine sees to.
    """
    kind = type(command)
    for get in _ONE_ID[kind]:
        named = get(command)
        if named is not None and named not in own:
            return int(named)
    for get in _MANY_IDS[kind]:
        for named in get(command):
            if named not in own:
                return int(named)
    return None


def _fields(kind: type[Any], ending: str) -> tuple[Callable[[Any], Any], ...]:
    names = [field.name for field in msgspec.structs.fields(kind)]
    return tuple(attrgetter(name) for name in names if name.endswith(ending) and name != "token_ids")


_KINDS = get_args(Command)
_ONE_ID = {kind: _fields(kind, "_id") for kind in _KINDS}
_MANY_IDS = {kind: _fields(kind, "_ids") for kind in _KINDS}
