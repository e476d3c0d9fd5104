"""The kernels on every instruction set that this CPU has."""

from __future__ import annotations

import pytest

from tartlet_engine.kernels.build import INSTRUCTION_SETS, Kernels, KernelsUnavailableError, load_kernels


@pytest.fixture(scope="session", params=[each.name for each in INSTRUCTION_SETS])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """The kernels for one instruction set."""
    try:
        return load_kernels(request.param)
    except KernelsUnavailableError as error:
        pytest.skip(str(error))
