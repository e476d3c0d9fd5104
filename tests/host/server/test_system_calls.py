"""System calls that a process has given up."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tartlet.server.system_calls import _ARCHITECTURES, _NUMBERS

PROGRAM = """
import os, socket, sys, threading
from tartlet.server.system_calls import NEW_SOCKETS, OTHER_PROCESSES, OTHER_PROGRAMS, forbid

pair = socket.socketpair()
assert forbid({names})

def outcome(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__

def tell():
    print(outcome(socket.socket), outcome(lambda: os.execv("/bin/true", ["true"])), outcome(lambda: pair[0].send(b"x")))

tell()
thread = threading.Thread(target=tell)
thread.start()
thread.join()
"""

pytestmark = pytest.mark.skipif(platform.machine() not in _NUMBERS, reason="not for this architecture")


def test_what_is_forbidden_fails_in_every_thread() -> None:
    """And what is not still works: memory, files, threads, sockets that are there."""
    program = PROGRAM.format(names="(*NEW_SOCKETS, *OTHER_PROGRAMS, *OTHER_PROCESSES)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("PermissionError PermissionError done\n" * 2, "")


def test_nothing_else_is_forbidden() -> None:
    """Than what is named."""
    program = PROGRAM.format(names="NEW_SOCKETS")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)  # it has become another program


def test_unix_sockets_can_be_left() -> None:
    """While those of the network cannot be made, whatever they are for."""
    program = """
import socket
from tartlet.server.system_calls import forbid

assert forbid((), other_sockets_than_unix=True)
socket.socket(socket.AF_UNIX).close()
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
    except PermissionError:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("refused\n" * 4, "")


def test_each_architecture_has_all_calls() -> None:
    """By its own numbers."""
    assert set(_ARCHITECTURES) == set(_NUMBERS)
    assert len({frozenset(numbers) for numbers in _NUMBERS.values()}) == 1
