"""The contract as the generator of bindings reads it."""

from __future__ import annotations

import pytest

from tartlet_bindings.model import Contract
from tartlet_bindings.outputs import ROOT
from tartlet_bindings.reading import read_contract


@pytest.fixture(scope="session")
def contract() -> Contract:
    """The contract in wit/."""
    return read_contract(ROOT / "wit")
