from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from tartlet.server.worker.files import give_up_files

can = give_up_files()
print(can)
for path in map(Path, sys.argv[1:]):
    try:
        print(path.read_text())
    except PermissionError:
        print("may not")
"""
SHOWN = {
    "server/tartlet.db": "may not",
    "server/blobs/acme/ab": "may not",
    "saved/acme": "may not",
    "server/code/acme/ab": "text",
    "models/small": "text",
    "server.toml": "may not",
    "new_models/small": "text",
}


def test_what_a_worker_can_read(tmp_path: Path) -> None:
    """What it runs, and no more of what tenants have; nor the file of settings, which may hold a password."""
    for name in SHOWN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    command = [sys.executable, "-c", PROGRAM, *(str(tmp_path / name) for name in SHOWN)]
    environment = os.environ | {"TARTLET_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split("\n")
    if done[0] == "False":
        pytest.skip("this kernel has no Landlock")

    assert done[1:-1] == list(SHOWN.values())
