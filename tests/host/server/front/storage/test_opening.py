from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tartlet.errors import ConfigError, UnavailableError
from tartlet.server.front.storage import default_url, open_storage


async def test_without_a_url_it_is_a_file_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which nobody else can read, nor what SQLite puts beside it."""
    monkeypatch.setenv("TARTLET_HOME", str(tmp_path / "home"))
    async with open_storage() as storage:
        await storage.tenants.create("acme")
        files = sorted((tmp_path / "home" / "server").iterdir())
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}

    assert default_url() == f"sqlite:///{tmp_path / 'home' / 'server' / 'tartlet.db'}"
    assert modes == {"tartlet.db": 0o600, "tartlet.db-shm": 0o600, "tartlet.db-wal": 0o600}


@pytest.mark.parametrize(
    "url", ["mysql://host/name", "sqlite://", "sqlite:///:memory:", "://", "redis://x", "nosuch/f"]
)
async def test_what_cannot_be_a_database_is_an_error_of_the_user(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it can be."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        async with open_storage(url):
            pass
    assert caught.value.hint


async def test_a_server_that_does_not_answer_is_not_available(tmp_path: Path) -> None:
    """That may pass. The error tells nothing of where it was looked for."""
    with pytest.raises(UnavailableError) as caught:
        async with open_storage(f"postgresql://user:secret@/name?host={tmp_path}"):
            pass
    assert "secret" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


async def test_what_is_no_database_is_not_available(tmp_path: Path) -> None:
    """The file is left as it is."""
    (tmp_path / "db").write_bytes(b"not a database, but quite long" * 100)
    with pytest.raises(UnavailableError):
        async with open_storage(str(tmp_path / "db")):
            pass
    assert (tmp_path / "db").read_bytes().startswith(b"not a database")


def test_storage_loads_no_wasmtime_and_no_torch() -> None:
    """It is the front's."""
    code = "import sys, tartlet.server.front.storage; print({'wasmtime', 'torch', 'cffi', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


async def test_one_front_uses_a_database(url: str) -> None:
    """Another is refused until the first is gone; who is no front is not."""
    async with open_storage(url) as first:
        await first.become_front()
        async with open_storage(url) as second:
            await second.tenants.create("acme")
            with pytest.raises(ConfigError, match="another server uses the database"):
                await second.become_front()
    async with open_storage(url) as third:
        await third.become_front()


async def test_a_front_that_was_killed_holds_nothing(url: str) -> None:
    """The system lets go for it."""
    code = """
import asyncio, os, sys
from tartlet.server.front.storage import open_storage

async def main():
    async with open_storage(sys.argv[1]) as storage:
        await storage.become_front()
        print("there", flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""
    front = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE, text=True)
    assert front.stdout is not None
    assert front.stdout.readline() == "there\n"
    async with open_storage(url) as storage:
        with pytest.raises(ConfigError):
            await storage.become_front()
        front.kill()
        front.communicate()
        while True:  # PostgreSQL takes a moment to see that the connection is closed
            try:
                await storage.become_front()
            except ConfigError:
                continue
            break
