from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tartlet.errors import ConfigError
from tartlet.server.wire.socket_folder import MOST_PATH_BYTES, SocketFolder, sweep

HOLD = """
import sys
from pathlib import Path
from tartlet.server.wire.socket_folder import SocketFolder

folder = SocketFolder(Path(sys.argv[1]))
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_a_folder_is_its_users_own_and_new_each_time(tmp_path: Path) -> None:
    """Mode 0700, another name for each server, gone with it."""
    with SocketFolder(tmp_path) as one, SocketFolder(tmp_path) as two:
        assert one.path != two.path
        assert stat.S_IMODE(one.path.stat().st_mode) == 0o700
        one.socket_path("engine").touch()
        one.close()
        assert [each.name for each in tmp_path.iterdir()] == [two.path.name]
    assert list(tmp_path.iterdir()) == []


def test_sockets_fit_into_the_default_folder() -> None:
    """The longest name that may be asked for can be bound."""
    with SocketFolder() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder.socket_path("x" * 24)))


def test_a_place_whose_path_is_too_long_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is."""
    long = tmp_path / ("x" * MOST_PATH_BYTES)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))

    with SocketFolder() as folder:
        assert folder.path.parent != long


def test_what_a_dead_server_left_is_swept(tmp_path: Path) -> None:
    """Killed, it leaves its folder; the next start removes it, and no folder of a server that lives."""
    with SocketFolder(tmp_path) as living:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with holder:
            assert holder.stdout is not None
            left = Path(holder.stdout.readline().strip())
            assert sweep(tmp_path) == 0
            assert left.is_dir()
            holder.send_signal(signal.SIGKILL)
        assert left.is_dir()
        (left / "engine").touch()
        (tmp_path / "tartlet-sockets-half").mkdir(mode=0o700)  # dead before it had a lock

        with SocketFolder(tmp_path) as new:
            assert {each.name for each in tmp_path.iterdir()} == {living.path.name, new.path.name}


def test_what_is_no_such_folder_is_left_alone(tmp_path: Path) -> None:
    """Links, files, folders of another name, mode or content."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "lock").touch()
    (tmp_path / "tartlet-sockets-link").symlink_to(elsewhere)
    (tmp_path / "tartlet-sockets-file").touch()
    (tmp_path / "tartlet-sockets-open").mkdir()
    (tmp_path / "tartlet-sockets-open").chmod(0o755)
    (tmp_path / "tartlet-sockets-full").mkdir(mode=0o700)
    (tmp_path / "tartlet-sockets-full" / "file").touch()
    before = sorted(tmp_path.rglob("*"))

    assert sweep(tmp_path) == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_many_servers_may_start_at_once(tmp_path: Path) -> None:
    """None sweeps what another has just made."""
    folders: list[SocketFolder] = []

    def start() -> None:
        folders.extend(SocketFolder(tmp_path) for _ in range(30))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({folder.path for folder in folders}) == 120
    assert all((folder.path / "lock").exists() for folder in folders)
    for folder in folders:
        folder.close()


def test_where_none_can_be_made_is_a_typed_error(tmp_path: Path) -> None:
    """A place that does not exist, or may not be written to."""
    with pytest.raises(ConfigError, match="cannot make a folder for sockets"):
        SocketFolder(tmp_path / "nowhere")
    if os.getuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(ConfigError, match="cannot make a folder for sockets"):
            SocketFolder(tmp_path)
