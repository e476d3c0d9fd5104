"""A worker that works, until it doesn't: what it sends is damaged, as the file `way` in TARTLET_HOME says."""

from __future__ import annotations

import asyncio
import os
import random
import sys

import msgspec

from tartlet import paths
from tartlet.events import RunUsage
from tartlet.server.worker import worker
from tartlet.server.worker.connection import Connection
from tartlet.server.worker.messages import Attached, Ended, Printed, Written

WAYS = ("flip", "cut", "double", "swap", "noise", "huge", "other", "flood", "lie", "no JSON")


class HostileConnection(Connection):
    """Damages one message in ten, always in the same way."""

    way = ""
    draw = random.Random()

    def send(self, message: msgspec.Struct) -> None:
        """Send a message, or something like it."""
        if isinstance(message, Attached) or self.draw.random() > 0.1:
            super().send(message)
            return
        frame = self._frames.pack(message)
        self._damage(message, frame)

    def _damage(self, message: msgspec.Struct, frame: bytearray) -> None:
        at = self.draw.randrange(4, len(frame))
        match self.way:
            case "flip":
                frame[at] ^= 1 << self.draw.randrange(8)
                self._raw(frame)
            case "cut":
                self._raw(frame[:at])
            case "double":
                self._raw(frame + frame)
            case "swap":
                asyncio.get_running_loop().call_later(0.05, self._raw, frame)
            case "noise":
                self._raw(self.draw.randbytes(200))
            case "huge":
                self._raw(b"\xff\xff\xff\x03" + bytes(1 << 20))
            case "other":
                number = self.draw.randrange(40)
                super().send(
                    self.draw.choice(
                        [
                            Printed(number, "x"),
                            Written(number, "x", "not JSON", -1),
                            Ended(number, RunUsage(), "not JSON"),
                        ]
                    )
                )
            case "flood":
                for _ in range(40):
                    super().send(Printed(getattr(message, "number", 1), "y" * (1 << 20)))
            case "no JSON":
                super().send(Ended(getattr(message, "number", 1), RunUsage(), "not JSON"))
            case "lie":
                super().send(Ended(getattr(message, "number", 1), RunUsage(cpu_ms=-1.0, generated_tokens=1 << 60), "1"))

    def _raw(self, data: bytes | bytearray) -> None:
        if self._transport is not None and not self._closed.is_set():
            self._flush()
            self._transport.write(data)


def main() -> None:
    """Be a worker."""
    given = dict(each.removeprefix("--").split("=") for each in sys.argv[1:])
    HostileConnection.draw = random.Random(os.getpid())
    HostileConnection.way = (paths.home() / "way").read_text()
    worker.Connection = HostileConnection
    asyncio.run(worker.work(int(given["front"]), num_spares=0))


if __name__ == "__main__":
    main()
