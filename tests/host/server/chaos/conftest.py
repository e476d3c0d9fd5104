"""Servers in processes of their own, in a TARTLET_HOME that is each test's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.host.server.chaos.server_process import ServerProcess, fake_server

MakeServer = Callable[..., ServerProcess]

ROOMY = {"token_delay_s": 0.004, "num_pages": 65_536, "context_len": 16_384}
"""An engine without a model that has room for long stories of many, 250 tokens of each in a second."""


@pytest.fixture
def home(tmp_path: Path, own_home: Path) -> Path:
    """A new TARTLET_HOME, with the runner and native code that all tests share."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("runners", "components", "kernels", "models"):
        (folder / name).symlink_to((own_home / name).resolve())
    return folder


@pytest.fixture
async def make_server(home: Path, short_folder: Path) -> AsyncIterator[MakeServer]:
    """Makes servers without a model, and ends what a test leaves of them."""
    made = []

    def make(**options: Any) -> ServerProcess:
        made.append(fake_server(home, short_folder, **options))
        return made[-1]

    yield make
    for server in made:
        await server.clean_up()


@pytest.fixture
async def server(make_server: MakeServer) -> AsyncIterator[ServerProcess]:
    """A server that is ready. At the end nothing may be left in it, and it must end well."""
    server = make_server(fake=ROOMY, settings={"limits": {"runs_at_once": 500}})
    await server.start()
    yield server
    await server.check_idle()
    await server.stop()
