from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

SHOW = """
import os, resource, socket
from tartlet.server.child_process import end_with_parent, give_up_rights, keep_private

end_with_parent(os.getppid())
give_up_rights()
keep_private()
print(oct(os.umask(0)))
print(*resource.getrlimit(resource.RLIMIT_CORE), *resource.getrlimit(resource.RLIMIT_NOFILE))
print(open("/proc/self/oom_score_adj").read().strip())
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:"))])
for action in (lambda: socket.socket(socket.AF_INET), lambda: os.execv("/bin/true", ["true"])):
    try:
        action()
    except PermissionError:
        print("refused")
"""
FORK = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", '''
import os, time
from tartlet.server.child_process import end_with_parent
end_with_parent(os.getppid())
print(os.getpid(), flush=True)
time.sleep(600)
'''])
child.wait()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these are Linux's means")


def test_a_worker_gives_up_what_it_need_not_have() -> None:
    """No core dumps, few files, private files, no network, no programs; it is the first to go when memory runs out."""
    done = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["0o77", "0 0 1024 1024", "500", "['1', '2']", "refused", "refused"]


def test_a_child_goes_with_its_parent() -> None:
    """Though the parent is killed."""
    parent = subprocess.Popen([sys.executable, "-c", FORK], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()

    child.wait(60)
    assert not child.is_running()


def test_who_comes_too_late_goes_at_once() -> None:
    """The parent has ended while the child was starting."""
    code = f"from tartlet.server.child_process import end_with_parent; end_with_parent({os.getppid()})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "is gone" in done.stderr
