"""The process in which constraints are tried before the engine compiles them; started by `trials`.

It reads and writes messages: four bytes of length, then MessagePack. The first holds the vocabulary. A text that takes
too long or too much memory ends this process and nothing else.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tartlet_engine.api import ConstraintKind
from tartlet_engine.constraints.grammars import GrammarError, compile_grammar, message_of
from tartlet_engine.constraints.vocabulary import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLTokenizer

NICENESS = 5  # the model goes first


class Setup(msgspec.Struct, frozen=True):
    """The first message: the vocabulary, and how many bytes a trial may take."""

    tokens: list[bytes]
    special_ids: list[int]
    eos_ids: list[int]
    memory_bytes: int


class Trial(msgspec.Struct, frozen=True):
    """A constraint to try. The process ends if it has no answer after `time_limit_s`."""

    kind: ConstraintKind
    text: str
    time_limit_s: float


class Verdict(msgspec.Struct, frozen=True):
    """The answer: what is wrong with it, if anything."""

    problem: str | None = None


def write(fd: int, message: msgspec.Struct) -> None:
    """Write one message."""
    data = msgspec.msgpack.encode(message)
    rest = memoryview(struct.pack("<I", len(data)) + data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read(fd: int) -> bytes:
    """Read one message, or exit if there is none."""
    (length,) = struct.unpack("<I", _read_bytes(fd, 4))
    return _read_bytes(fd, length)


def _read_bytes(fd: int, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(fd, count - len(parts))
        if not part:
            sys.exit(0)  # the engine is gone
        parts += part
    return bytes(parts)


def greedy_encoder(tokens: list[bytes]) -> Callable[[str], list[int]]:
    """Return a way to write a text in tokens, always the longest that fits: near enough for a trial."""
    ids = {token: token_id for token_id, token in enumerate(tokens) if token}
    longest = max(map(len, ids), default=0)

    def encode(text: str) -> list[int]:
        data, start, token_ids = text.encode(), 0, []
        while start < len(data):
            ends = range(min(len(data), start + longest), start, -1)
            end = next((end for end in ends if data[start:end] in ids), None)
            if end is None:
                break
            token_ids.append(ids[data[start:end]])
            start = end
        return token_ids

    return encode


def _problem(tokenizer: LLTokenizer, trial: Trial) -> str | None:
    """Compile a constraint and compute its first mask. Returns what is wrong with that; raises GrammarError."""
    matcher = compile_grammar(tokenizer, trial.kind, trial.text)
    matcher.compute_bitmask()
    if matcher.is_stopped() and not matcher.is_accepting():
        return f"there is no text that it allows ({message_of(matcher)})"
    return None


def main() -> None:
    """Try constraints until the input ends."""
    os.nice(NICENESS)
    setup = msgspec.msgpack.decode(_read(0), type=Setup)
    encode = greedy_encoder(setup.tokens)
    tokenizer = Vocabulary(setup.tokens, setup.special_ids, setup.eos_ids, encode).make_tokenizer()
    with open("/proc/self/statm", encoding="ascii") as statm:
        in_use = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + setup.memory_bytes,) * 2)
    write(1, Verdict())
    while True:
        trial = msgspec.msgpack.decode(_read(0), type=Trial)
        # Nothing handles this signal, so it ends the process, even if the engine has gone without doing so.
        signal.setitimer(signal.ITIMER_REAL, trial.time_limit_s + 1)
        try:
            verdict = Verdict(_problem(tokenizer, trial))
        except GrammarError as error:
            verdict = Verdict(str(error))
        write(1, verdict)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
