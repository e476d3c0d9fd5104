"""The layout of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from wasmtime import _ffi as wasmtime_ffi

from tartlet.wasm.values import Kind

if TYPE_CHECKING:
    from conftest import Guests


@pytest.mark.parametrize("kind", Kind)
def test_kinds_are_those_of_wasmtime(kind: Kind) -> None:
    """Our numbers of the kinds are those of the wasmtime package: a wrong one could crash the process."""
    assert kind == getattr(wasmtime_ffi, f"WASMTIME_COMPONENT_{kind.name}").value


@pytest.mark.parametrize(
    "inner", ["(option u32)", "(result (error u32))", "(result (option u32))", "(result (result))"]
)
def test_ambiguous_options(guests: Guests, inner: str) -> None:
    """An option of what may itself be None in Python is refused when it is bound."""
    text = f'(component (import "test:host/odd" (instance (export "f" (func (param "x" (option {inner})))))))'

    with pytest.raises(TypeError, match="None could mean either"):
        guests.link(text, {"test:host/odd": {"f": lambda _fiber, _x: None}})


@pytest.mark.parametrize("inner", ["u32", "(result u32)", "(list (option u32))"])
def test_clear_options(guests: Guests, inner: str) -> None:
    """Any other option has a Python form."""
    text = f'(component (import "test:host/odd" (instance (export "f" (func (param "x" (option {inner})))))))'

    guests.link(text, {"test:host/odd": {"f": lambda _fiber, _x: None}})
