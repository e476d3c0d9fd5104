"""A folder with a path short enough for sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tartlet.server.wire.socket_folder import SocketFolder


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Where a test may listen."""
    with SocketFolder() as folder:
        yield folder.socket_path("test.sock")
