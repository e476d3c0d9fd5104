from __future__ import annotations

from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tartlet.component_limits import EMBEDDED, ComponentLimits
from tartlet.errors import ConfigError
from tartlet.limits import MIB, Limits
from tartlet.server.front.limits import (
    TenantLimits,
    all_settings,
    checked_settings,
    limits_of,
    parse_settings,
    setting_names,
    tenant_limits,
)

NAMES = [field.name for field in fields(Limits)]


def test_a_run_that_asks_for_nothing_gets_the_defaults() -> None:
    """Of every limit, and never more than the ceiling."""
    plain = TenantLimits()

    assert limits_of(plain, {}) == asdict(plain.defaults)
    assert limits_of(plain, {})["max_memory_bytes"] == 128 * MIB
    assert list(limits_of(plain, {})) == NAMES


def test_a_run_gets_what_it_asks_for_up_to_the_ceiling() -> None:
    """What is above is refused by name; so is no limit where there is one."""
    tenant = tenant_limits({"max_tokens": 50_000})

    assert limits_of(tenant, {"max_tokens": 50_000})["max_tokens"] == 50_000
    for wanted, shown in ((50_001, "50,001"), (None, "no limit")):
        with pytest.raises(ConfigError, match="max_tokens may be at most 50,000") as caught:
            limits_of(tenant, {"max_cpu_ms": 5, "max_tokens": wanted})
        assert (caught.value.code, shown in caught.value.message) == ("limit_too_high", True)
    unlimited = tenant_limits({"max_tokens": None})
    assert limits_of(unlimited, {"max_tokens": None})["max_tokens"] is None


def test_what_is_no_limit_is_refused() -> None:
    """With the name that comes close, or what it must be."""
    with pytest.raises(ConfigError) as caught:
        limits_of(TenantLimits(), {"max_token": 5})
    assert "Did you mean max_tokens?" in caught.value.hint
    for value in (0, -1, True, 1.5, "5", 1 << 63):
        with pytest.raises(ConfigError, match="max_tokens must be positive"):
            limits_of(TenantLimits(), {"max_tokens": value})  # type: ignore[dict-item]


def test_a_lower_ceiling_lowers_the_default() -> None:
    """A higher one leaves it; the default can be set, too, under the ceiling."""
    assert tenant_limits({"max_tokens": 5}).defaults.max_tokens == 5
    assert tenant_limits({"max_kv_pages": 9}).defaults.max_kv_pages == 9
    assert tenant_limits({"max_tokens": 10**6}).defaults == TenantLimits().defaults
    assert tenant_limits({"max_tokens": 10**6, "default_tokens": 20_000}).defaults.max_tokens == 20_000
    assert tenant_limits({"default_tokens": None}).defaults.max_tokens == TenantLimits().ceilings.max_tokens


def test_a_tenants_settings_go_over_the_servers() -> None:
    """Which go over what is built in."""
    limits = tenant_limits({"runs_at_once": 5, "queue_length": 7}, {"queue_length": 0, "requests_per_minute": None})

    assert (limits.runs_at_once, limits.queue_length, limits.requests_per_minute) == (5, 0, None)
    assert limits.names == TenantLimits().names


@given(
    st.dictionaries(st.sampled_from(setting_names()), st.none() | st.integers(1, 1 << 40)),
    st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(1, 1 << 40)),
)
def test_no_run_gets_more_than_its_ceilings(settings: dict[str, int | None], asked: dict[str, int | None]) -> None:
    """Whatever is set, and whatever is asked for."""
    tenant = tenant_limits(settings)
    ceilings = asdict(tenant.ceilings)
    fits = {
        name: value
        for name, value in asked.items()
        if ceilings[name] is None or (value is not None and value <= ceilings[name])
    }
    limits = limits_of(tenant, fits)

    assert {name: limits[name] for name in fits} == fits
    assert all(ceilings[name] is None or (limits[name] or 1 << 62) <= ceilings[name] for name in NAMES)
    if fits != asked:
        with pytest.raises(ConfigError):
            limits_of(tenant, asked)


def test_settings_can_be_written_as_text() -> None:
    """As on the command line; a run's ceilings without their `max_`."""
    texts = ["kv_pages=4_000", "max_tokens=none", "default_tokens=5", "queue_length=0"]

    assert parse_settings(texts) == {"max_kv_pages": 4000, "max_tokens": None, "default_tokens": 5, "queue_length": 0}
    for wrong in ("tokens", "tokens=", "tokens=-1", "tokens=1.5", "tokens=x", "=5", "tokens=0", "runs_at_once=0"):
        with pytest.raises(ConfigError):
            parse_settings([wrong])
    with pytest.raises(ConfigError, match="whole number"):
        parse_settings(["tokens=" + "9" * 5000])


def test_unknown_settings_are_refused() -> None:
    """With the name that comes close."""
    with pytest.raises(ConfigError) as caught:
        checked_settings({"run_at_once": 5})
    assert "Did you mean runs_at_once?" in caught.value.hint
    with pytest.raises(ConfigError, match="runs_at_once"):
        checked_settings({"runs_at_once": True})


def test_what_may_be_in_components_is_a_tenant_s_own() -> None:
    """Each limit can be set but the size, which is that of all uploads; none is as much as anybody may load."""
    limits = tenant_limits(parse_settings(["functions=90_000", "code_bytes=none"])).component

    assert limits == replace(ComponentLimits(), max_functions=90_000, max_code_bytes=EMBEDDED.max_code_bytes)
    assert all_settings(tenant_limits({"max_functions": 9}))["max_functions"] == 9
    assert "max_size_bytes" not in setting_names()
    assert len(setting_names()) == len(set(setting_names()))
