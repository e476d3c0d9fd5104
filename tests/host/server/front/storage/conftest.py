"""Storage on SQLite, and on a PostgreSQL that is started for the tests if there is one on this machine."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tartlet.server.front.storage import Storage, open_storage

OpenStorage = Callable[[], AbstractAsyncContextManager[Storage]]


class Clock:
    """A clock that the tests move."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0  # 2027-01-15 08:00 UTC

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, with `%s` for a database; its data lies in a temporary folder."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("there is no PostgreSQL in /usr/lib/postgresql")
    as_user: dict[str, str] = {}
    if os.getuid() == 0:  # which PostgreSQL refuses to run as
        try:
            as_user = {"user": pwd.getpwnam("nobody").pw_name}
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user `nobody`")
    folder = Path(tempfile.mkdtemp(prefix="tartlet-pg-", dir="/tmp"))  # a socket's path must be short
    try:
        if as_user:
            shutil.chown(folder, as_user["user"])
        data = folder / "data"
        initdb = [str(programs[-1]), "-D", str(data), "-U", "tartlet", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **as_user)
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c max_connections=60"
        pg_ctl = [str(programs[-1].with_name("pg_ctl")), "-D", str(data), "-w", "-t", "60"]
        start = [*pg_ctl, "-o", options, "-l", str(folder / "log"), "start"]
        subprocess.run(start, check=True, capture_output=True, cwd=folder, **as_user)
        try:
            yield f"postgresql://tartlet@/%s?host={folder}"
        finally:
            subprocess.run([*pg_ctl, "-m", "immediate", "stop"], check=True, capture_output=True, cwd=folder, **as_user)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """The URL of an empty database, of one kind and then the other."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'tartlet.db'}"
        return
    import asyncpg

    server: str = request.getfixturevalue("postgres_url")
    name = f"t{uuid.uuid4().hex}"
    maintenance = await asyncpg.connect(server % "postgres")
    try:
        await maintenance.execute(f"CREATE DATABASE {name}")
        yield server % name
        await maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await maintenance.close()


@pytest.fixture
async def open_again(url: str, clock: Clock) -> OpenStorage:
    """Opens the database of the test once more, as another process would."""
    return lambda: open_storage(url, clock=clock)


@pytest.fixture
async def storage(open_again: OpenStorage) -> AsyncIterator[Storage]:
    """Storage with the built-in tenant and one other."""
    async with open_again() as opened:
        await opened.tenants.create("acme")
        yield opened


async def outcomes(*tasks: object) -> list[object]:
    """What coroutines that run at once return or raise."""
    return await asyncio.gather(*tasks, return_exceptions=True)  # type: ignore[call-overload]
