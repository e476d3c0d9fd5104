"""Samplers: what they send to the host, and what they refuse."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, fields
from typing import Any

import pytest

from tartlet_sdk import InvalidArgument, Sampler
from tartlet_sdk.sampler import Settings


@pytest.mark.parametrize(
    ("sampler", "changed"),
    [
        (Sampler.greedy(), {"temperature": 0.0}),
        (Sampler.temperature(0.5), {"temperature": 0.5}),
        (Sampler.top_p(0.7, 0.95), {"temperature": 0.7, "top_p": 0.95}),
        (Sampler.top_k(30), {"top_k": 30}),
        (Sampler.top_k(30, 0.5, seed=7), {"top_k": 30, "temperature": 0.5, "seed": 7}),
        (Sampler.min_p(0.1, repetition_penalty=1.2), {"min_p": 0.1, "repetition_penalty": 1.2}),
        (Sampler.top_k(5).with_(top_k=9, presence_penalty=1), {"top_k": 9, "presence_penalty": 1}),
    ],
)
def test_each_kind_sets_what_it_says(sampler: Sampler, changed: dict[str, Any]) -> None:
    """A kind of sampler sets its own settings and leaves the others at what means "none"."""
    assert asdict(sampler.settings) == asdict(Settings()) | changed


def test_the_contract_gets_all_settings(stub: Any) -> None:
    """The contract's record has the same fields, as numbers of the right kind."""
    sent = Sampler.top_p(1, 1, logit_bias={3: 2}, seed=1).to_wit()

    assert {field.name for field in fields(sent)} == {field.name for field in fields(Settings)}
    assert (type(sent.temperature), type(sent.top_p), sent.logit_bias) == (float, float, [(3, 2.0)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": -0.1}, "temperature must be a finite number from 0, not -0.1"),
        ({"temperature": float("nan")}, "temperature must be a finite number from 0, not nan"),
        ({"temperature": "hot"}, "temperature must be a number, not str"),
        ({"top_p": 0}, "top_p must be greater than 0"),
        ({"top_p": 1.5}, "top_p must be a finite number from 0 to 1, not 1.5"),
        ({"top_k": -1}, "top_k must be from 0 to 4294967295, not -1"),
        ({"top_k": 2.0}, "top_k must be an int, not float"),
        ({"min_p": 2}, "min_p must be a finite number from 0 to 1, not 2"),
        ({"repetition_penalty": 0}, "repetition_penalty must be greater than 0; 1 is none"),
        ({"seed": -1}, "seed must be from 0 to 18446744073709551615, not -1"),
        ({"logit_bias": [1]}, "logit_bias must be a dict, not list"),
        ({"logit_bias": {"a": 1}}, "a token of logit_bias must be an int, not str"),
        ({"logit_bias": {1: float("inf")}}, "logit_bias[1] must be a finite number, not inf"),
    ],
)
def test_a_setting_out_of_range_is_refused_at_once(changes: dict[str, Any], message: str) -> None:
    """The error names the setting, its range and what was given."""
    with pytest.raises(InvalidArgument) as caught:
        Sampler.greedy().with_(**changes)

    assert str(caught.value) == f"Sampler: {message}"


def test_a_sampler_does_not_change() -> None:
    """Samplers can be shared between tasks."""
    with pytest.raises(FrozenInstanceError):
        Sampler.greedy().settings.temperature = 1.0  # type: ignore[misc]
