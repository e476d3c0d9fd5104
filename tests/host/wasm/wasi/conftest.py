"""What the tests of WASI share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tartlet.wasm.fiber import Fiber

if TYPE_CHECKING:
    from tests.host.wasm.conftest import Guests


@pytest.fixture
def fiber(guests: Guests) -> Fiber:
    """A fiber that is never started: host functions can be called with it."""
    return Fiber(guests.executor, guests.link("(component)"))
