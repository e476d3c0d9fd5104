"""What a tenant may use: the server's settings, and over them what the operator has set for the tenant.

A setting has a name, and a whole number or None (no limit). `max_tokens` and the other fields of `tartlet.Limits` are
ceilings of a run; `default_tokens` and so on are what a run gets that asks for nothing. `max_functions` and the other
fields of `ComponentLimits` are for what is uploaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from tartlet.component_limits import EMBEDDED, ComponentLimits
from tartlet.errors import ConfigError
from tartlet.limits import MIB, Limits

_MOST = 1 << 63
_MOST_SHOWN = 20


def _ceilings() -> Limits:
    return Limits(max_wall_ms=3_600_000)


def _defaults() -> Limits:
    return Limits(
        max_memory_bytes=128 * MIB,
        max_cpu_ms=10_000,
        max_tokens=16_384,
        max_handles=1024,
        max_output_bytes=1 * MIB,
        max_host_calls=1_000_000,
        max_controllers=4,
        max_branches=16,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantLimits:
    """What a tenant may use. None is no limit."""

    ceilings: Limits = field(default_factory=_ceilings)
    """What a run may ask for at most."""
    defaults: Limits = field(default_factory=_defaults)
    """What a run gets that asks for nothing, but never more than the ceiling."""
    runs_at_once: int | None = 64
    """Runs that go on at once; others wait for a place."""
    queue_length: int | None = 256
    """Runs that wait for a place; one more is refused."""
    queue_wait_ms: int | None = 60_000
    """How long a run waits for a place."""
    requests_per_minute: int | None = 1200
    """Requests of the API. A minute's worth may come at once."""
    tokens_per_minute: int | None = None
    """Generated tokens, counted as they come; while there is a debt, no run is started, and those that go on do so."""
    upload_bytes: int | None = None
    """The largest program. None: as large as the server takes any."""
    inferlets: int | None = 1000
    """Programs that the tenant has."""
    inferlet_bytes: int | None = 1024 * MIB
    """What they take together."""
    names: int | None = 4000
    """Names of programs, each version counted."""
    component: ComponentLimits = field(default_factory=ComponentLimits)
    """What may be in a component that is uploaded; its size is `upload_bytes`."""


def setting_names() -> list[str]:
    """The names of all settings."""
    of_runs = [each.name for each in fields(Limits)]
    own = [each.name for each in fields(TenantLimits) if each.name not in ("ceilings", "defaults", "component")]
    return [*of_runs, *(_default_name(name) for name in of_runs), *own, *_of_components()]


def checked_settings(settings: Mapping[str, int | None]) -> dict[str, int | None]:
    """Settings whose names and values can be: positive whole numbers, or None; `queue_length` may be 0.

    Raises:
        ConfigError: The first that cannot be, with the name that comes close.
    """
    known = setting_names()
    for name, value in settings.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            guess = f"Did you mean {close[0]}? " if close else ""
            hint = f"{guess}`tartlet tenant show default` lists them all."
            raise ConfigError(f"{name[:80]!r} is no limit of a tenant", hint=hint)
        least = 0 if name == "queue_length" else 1
        if value is not None and not (type(value) is int and least <= value < _MOST):
            raise ConfigError(f"{name} must be a whole number from {least}, or none, got {value!r}")
    return dict(settings)


def parse_settings(texts: Sequence[str]) -> dict[str, int | None]:
    """Settings out of `name=value` texts, as on the command line. `tokens` is `max_tokens`; `none` is no limit.

    Raises: ConfigError.
    """
    settings: dict[str, int | None] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        number = value.replace("_", "").replace(",", "")
        if not separator or not (value == "none" or number.isdecimal()):
            raise ConfigError(f"{text!r} sets no limit", hint="For example: --limit kv_pages=4000, or tokens=none.")
        settings[_full_name(name)] = None if value == "none" else int(number[:_MOST_SHOWN])
    return checked_settings(settings)


def setting_name(name: str) -> str:
    """The name of a setting, which may be given without its `max_`. Raises ConfigError."""
    return next(iter(checked_settings({_full_name(name): None})))


def all_settings(limits: TenantLimits) -> dict[str, int | None]:
    """What holds for a tenant, by the names of the settings."""
    values = dict(asdict(limits.ceilings))
    values |= {_default_name(name): value for name, value in asdict(limits.defaults).items()}
    values |= asdict(limits.component)
    return {name: values[name] if name in values else getattr(limits, name) for name in setting_names()}


def tenant_limits(*settings: Mapping[str, int | None]) -> TenantLimits:
    """A tenant's limits: those of the server, then the tenant's own, each over those before.

    No limit on what is in a component is as much as a host's own user may load.

    Raises: ConfigError.
    """
    chosen: dict[str, int | None] = {}
    for each in settings:
        chosen |= checked_settings(each)
    of_runs = [each.name for each in fields(Limits)]
    ceilings = asdict(_ceilings()) | {name: chosen.pop(name) for name in of_runs if name in chosen}
    defaults = asdict(_defaults())
    for name in of_runs:
        default = chosen.pop(_default_name(name), defaults[name])
        defaults[name] = _smaller(default, ceilings[name])
    component = asdict(ComponentLimits())
    for name in _of_components():
        value = chosen.pop(name, component[name])
        component[name] = getattr(EMBEDDED, name) if value is None else value
    return TenantLimits(
        ceilings=Limits(**ceilings), defaults=Limits(**defaults), component=ComponentLimits(**component), **chosen
    )


def limits_of(tenant: TenantLimits, asked: Mapping[str, int | None]) -> dict[str, int | None]:
    """A run's limits, all fields of `tartlet.Limits`: what is asked for, and for the rest the tenant's defaults.

    Raises:
        ConfigError: What is asked for is no limit, or no positive whole number, or more than the tenant may have
            (`limit_too_high`); None, which is no limit, is more than any number.
    """
    ceilings, limits = asdict(tenant.ceilings), asdict(tenant.defaults)
    for name, value in asked.items():
        if name not in limits:
            close = difflib.get_close_matches(name, limits, n=1, cutoff=0.5)
            guess = f"Did you mean {close[0]}? " if close else ""
            raise ConfigError(f"{name[:80]!r} is no limit of a run", hint=f"{guess}They are: {', '.join(limits)}.")
        Limits(**{name: value})  # refuses what is no limit at all
        ceiling = ceilings[name]
        if ceiling is not None and (value is None or value > ceiling):
            wanted = "no limit" if value is None else f"{value:,}"
            raise ConfigError(
                f"{name} may be at most {ceiling:,} for this tenant, {wanted} was asked for",
                hint=f"The server's operator can allow more: tartlet tenant set NAME --limit {name}=...",
                code="limit_too_high",
            )
        limits[name] = value
    return limits


def _of_components() -> list[str]:
    return [each.name for each in fields(ComponentLimits) if each.name != "max_size_bytes"]


def _full_name(name: str) -> str:
    known = setting_names()
    return f"max_{name}" if name not in known and f"max_{name}" in known else name


def _default_name(name: str) -> str:
    return name.replace("max_", "default_", 1)


def _smaller(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
