"""Checks of what callers give to a host. Whatever is wrong is a `ConfigError` that names it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tartlet.errors import ConfigError
from tartlet.limits import Limits

if TYPE_CHECKING:
    from tartlet.runtime.program_names import Source  # it loads Wasmtime, which the server's front must not

_MAX_SEED = 2**64
MAX_TENANT_LEN = 256  # characters
MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000.0
_ENGINE_CALLS = ("check_integrity", "close", "listen", "stats", "submit", "text")


def checked_settings(*, model: str | Path, adapters: Mapping[str, str | Path] | None, **others: Any) -> dict[str, Any]:
    """What `compose.start_engine` is called with, but for `progress`. Which values are possible, the engine knows."""
    if not isinstance(model, str | Path):
        raise ConfigError(f"model must be a name or a path, got {model!r}")
    for name in ("dtype", "quantize"):
        check_text(name, others[name])
    for name in ("threads", "kv_pages"):
        check_count(name, others[name], least=1, may_be_none=True)
    check_count("swap_bytes", others["swap_bytes"], may_be_none=True)
    check_switch("prefix_cache", others["prefix_cache"])
    check_path("saved_path", others["saved_path"])
    for name in ("saved_bytes", "adapter_bytes"):
        check_count(name, others[name])
    return {"model": str(model), "adapters": checked_adapters(adapters), **others}


def check_count(name: str, value: int | None, *, least: int = 0, may_be_none: bool = False) -> None:
    """Refuse anything but a whole number from `least`, or None if that is allowed."""
    if (value is None and may_be_none) or (type(value) is int and value >= least):
        return
    allowed = f"a whole number, at least {least}" + (", or None" if may_be_none else "")
    raise ConfigError(f"{name} must be {allowed}, got {value!r}")


def check_switch(name: str, value: bool) -> None:
    """Refuse anything but True and False: the text "no" would count as true."""
    if type(value) is not bool:
        raise ConfigError(f"{name} must be True or False, got {value!r}")


def check_text(name: str, value: str | None, *, may_be_none: bool = False) -> None:
    """Refuse what is no text, or cannot be encoded as UTF-8."""
    if (value is None and may_be_none) or _is_unicode(value):
        return
    raise ConfigError(f"{name} must be Unicode text{' or None' if may_be_none else ''}, got {value!r}")


def check_path(name: str, value: str | Path | None) -> None:
    """Refuse what is no path; None is allowed."""
    if value is not None and not isinstance(value, str | Path):
        raise ConfigError(f"{name} must be a path or None, got {value!r}")


def check_engine(engine: object) -> None:
    """Refuse what lacks a method of an engine's client; None is allowed."""
    if engine is not None and not all(callable(getattr(engine, name, None)) for name in _ENGINE_CALLS):
        hint = "Give the name of a model as `model`; `engine` is for tartlet.testing.FakeEngine and the like."
        raise ConfigError(f"engine must be an engine's client or None, got {engine!r}", hint=hint)


def check_progress(progress: object) -> None:
    """Refuse what cannot be called."""
    if not callable(progress):
        raise ConfigError(f"progress must be a function of task, done and total, got {progress!r}")


def checked_tenant(tenant: str) -> str:
    """The tenant's name, if it can be one."""
    if _is_unicode(tenant) and 0 < len(tenant) <= MAX_TENANT_LEN:
        return tenant
    shown = repr(tenant[:40] + "..." if isinstance(tenant, str) and len(tenant) > MAX_TENANT_LEN else tenant)
    raise ConfigError(f"tenant must be Unicode text of 1 to {MAX_TENANT_LEN} characters, got {shown}")


def checked_run_id(run_id: str) -> str:
    """The run's name, if it can be one."""
    if isinstance(run_id, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", run_id):
        return run_id
    raise ConfigError(f"run_id must be 1 to 100 letters, digits, '_', '.' or '-', got {str(run_id)[:120]!r}")


def checked_weight(weight: float) -> float:
    """The weight, if it is in its range."""
    if type(weight) in (int, float) and math.isfinite(weight) and MIN_WEIGHT <= weight <= MAX_WEIGHT:
        return float(weight)
    raise ConfigError(f"weight must be {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, got {weight!r}")


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


def _is_unicode(value: object) -> bool:
    """Tell whether it is text without lone surrogates, which no encoding has."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_programs(programs: Mapping[str, Source] | None) -> dict[str, Source]:
    """The programs by name. Refuses what is no mapping, and names that nobody could ask for."""
    if programs is None:
        return {}
    if not isinstance(programs, Mapping):
        raise ConfigError(f"programs must be a mapping of names to programs, got {programs!r}")
    for name in programs:
        if not _is_unicode(name) or not name or name.startswith("@"):
            raise ConfigError(f"a program is named `name` or `name@version`, not {name!r}")
    return dict(programs)
