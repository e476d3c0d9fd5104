"""The trial process by itself: its messages, and its end."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.trial_child import Setup, Trial, Verdict, greedy_encoder, write

SETUP = Setup([bytes([byte]) for byte in range(256)] + [b"<end>"], [256], [256], 256 << 20)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """The process, which must be gone at the end."""
    command = [sys.executable, "-m", "tartlet_engine.constraints.trial_child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def say(child: subprocess.Popen[bytes], message: msgspec.Struct) -> None:
    assert child.stdin is not None
    write(child.stdin.fileno(), message)


def hear(child: subprocess.Popen[bytes]) -> Verdict:
    assert child.stdout is not None
    (length,) = struct.unpack("<I", os.read(child.stdout.fileno(), 4))
    return msgspec.msgpack.decode(os.read(child.stdout.fileno(), length), type=Verdict)


def test_it_answers_each_message_and_ends_with_its_input(child: subprocess.Popen[bytes]) -> None:
    """Setup and trials are answered one by one; without an engine at the other end it exits."""
    say(child, SETUP)
    assert hear(child) == Verdict()
    say(child, Trial(ConstraintKind.CHOICES, '["a", "b"]', 20))
    assert hear(child).problem is None
    say(child, Trial(ConstraintKind.CHOICES, "[]", 20))
    assert "0 choices" in (hear(child).problem or "")

    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(60) == 0


def test_greedy_tokens() -> None:
    """The longest token that fits comes first; what has no token ends it."""
    encode = greedy_encoder([b"", b"a", b"ab", b"abc", b"d"])

    assert encode("abcabad") == [3, 2, 1, 4]
    assert encode("abz") == [2]
    assert greedy_encoder([])("a") == []


def test_it_ends_by_itself_when_nobody_ends_it(child: subprocess.Popen[bytes]) -> None:
    """A second after a trial's time is over, the process ends, even if its engine cannot do that any more."""
    say(child, SETUP)
    hear(child)
    say(child, Trial(ConstraintKind.JSON_SCHEMA, '{"type": "integer", "multipleOf": 999983}', 0.1))

    assert child.wait(60) < 0
