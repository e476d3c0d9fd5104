from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

HEAD = """
import asyncio, os, signal, sys, threading, time
from tartlet.cli.interrupts import cancelling, ending_the_process

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if the tests run in the background of a shell

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
"""

AT_ONCE = """
threading.Thread(target=time.sleep, args=(3600,)).start()  # such as a model that is being loaded
with ending_the_process(lambda: print("tidied", flush=True)):
    ctrl_c()
    time.sleep(3600)
"""

ONE_CANCELS = """
async def run():
    cancelled = asyncio.Event()
    with cancelling(cancelled.set):
        ctrl_c()
        await cancelled.wait()

with ending_the_process(lambda: print("tidied", flush=True)):
    asyncio.run(run())
    print("went on", flush=True)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""

TWO_END = """
async def run():
    with cancelling(ctrl_c):
        ctrl_c()
        await asyncio.sleep(3600)

with ending_the_process(lambda: print("tidied", flush=True)):
    asyncio.run(run())
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (AT_ONCE, ("tidied\n", "cancelled\n", 130)),
        (ONE_CANCELS, ("went on\n", "", 0)),
        (TWO_END, ("tidied\n", "cancelled\n", 130)),
    ],
)
def test_what_ctrl_c_does(program: str, expected: tuple[str, str, int]) -> None:
    """It ends the process though a thread goes on; a run is cancelled first, and the second ends all."""
    command = [sys.executable, "-c", textwrap.dedent(HEAD + program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.stderr, done.returncode) == expected
