"""Checks of what callers give to a host. Whatever is wrong is a `ConfigError` that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tartlet.errors import ConfigError
from tartlet.limits import Limits

_MAX_SEED = 2**64


def check_model(model: str | Path) -> None:
    """Refuse anything but a name or a path."""
    if not isinstance(model, str | Path):
        raise ConfigError(f"model must be a name or a path, got {model!r}")


def check_spares(spares: int) -> None:
    """Refuse anything but a number from 0."""
    if type(spares) is not int or spares < 0:
        raise ConfigError(f"spares must be a whole number, not negative, got {spares!r}")


def checked_adapters(adapters: Mapping[str, str | Path] | None) -> dict[str, Path]:
    """The adapters' folders by name, absolute. What is in them is looked at when the model is loaded."""
    if adapters is None:
        return {}
    if not isinstance(adapters, Mapping):
        raise ConfigError(
            f"adapters must be folders by name, got {adapters!r}", hint='Write adapters={"name": "folder"}.'
        )
    for name, path in adapters.items():
        if not (isinstance(name, str) and isinstance(path, str | Path)):
            raise ConfigError(f"adapters must be folders by name, got {name!r}: {path!r}")
    return {name: Path(path).absolute() for name, path in adapters.items()}


def check_name(name: str) -> None:
    """Refuse a program's name that is no text, or cannot be encoded as UTF-8."""
    try:
        if isinstance(name, str):
            name.encode()
            return
    except UnicodeEncodeError:
        pass
    raise ConfigError(f"a program's name must be Unicode text, got {name!r}")


def checked_seed(seed: int) -> int:
    """The seed, if it is one."""
    if type(seed) is int and 0 <= seed < _MAX_SEED:
        return seed
    raise ConfigError(f"the seed must be a whole number, at least 0 and below 2**64, got {seed!r}")


def checked_limits(limits: Limits) -> Limits:
    """The limits, if they are any."""
    if isinstance(limits, Limits):
        return limits
    raise ConfigError(f"limits must be a tartlet.Limits, got {limits!r}", hint="Write limits=tartlet.Limits(...).")


def checked_json(value: Any) -> str:
    """A run's input as JSON."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"the input cannot be written as JSON: {error}") from error
