"""What a process that has given up files can still read and write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
from pathlib import Path
from tartlet.server.file_rights import restrict_files

home = Path(sys.argv[1])
hidden, writable = [home / "hidden", home / "missing"], [home / "own", Path("/dev/null")]
can = restrict_files(hidden=hidden, readable=[home / "hidden/shown"], writable=writable)

def tried(action):
    try:
        action()
    except PermissionError:
        return False
    return True

print(json.dumps([can] + [tried(lambda: eval(text)) for text in sys.argv[2:]]))
"""
READ = {
    "(home / 'open/file').read_text()": True,
    "(home / 'hidden/shown/file').read_text()": True,
    "(home / 'hidden/file').read_text()": False,
    "os.listdir(home / 'hidden')": False,
    "(home / 'link').read_text()": False,
    "Path('/proc/self/root', *(home / 'hidden/file').parts[1:]).read_text()": False,
    "(home / 'missing').mkdir()": False,
}
WRITTEN = {
    "(home / 'open/file').write_text('')": False,
    "(home / 'open/new').write_text('')": False,
    "(home / 'open/file').unlink()": False,
    "(home / 'hidden/shown/file').write_text('')": False,
    "(home / 'own/new').write_text('')": True,
    "os.replace(home / 'own/new', home / 'own/other')": True,
    "os.replace(home / 'own/other', home / 'open/other')": False,
    "Path('/dev/null').write_text('')": True,
    "os.utime(home / 'open/file')": True,
}
OTHERS = {"os.kill(os.getpid(), 0)": True}


@pytest.mark.parametrize("expected", [READ, WRITTEN, OTHERS], ids=["read", "written", "others"])
def test_what_can_be_done(tmp_path: Path, expected: dict[str, bool]) -> None:
    """Of hidden folders, what is made an exception; nothing is written but where that is allowed."""
    for name in ("open", "hidden/shown", "own"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("open/file", "hidden/file", "hidden/shown/file"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "hidden/file")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), *expected]
    can, *done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if not can:
        pytest.skip("this kernel has no Landlock")

    assert dict(zip(expected, done, strict=True)) == expected


def test_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and nothing has changed."""
    from tartlet.server import file_rights

    monkeypatch.setattr(sys, "platform", "elsewhere")
    assert not file_rights.restrict_files(hidden=[Path("/")])
    assert Path(__file__).read_text()
