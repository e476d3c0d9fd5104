"""A compile child that answers anything, or nothing, or goes, as the program says that it is to compile."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    """Read the job, and do what the uploaded file says: `way 3`."""
    job = json.loads(sys.stdin.read())
    way = int(Path(job["path"]).read_text().split("way ")[1].split()[0])
    WAYS[way]()


WAYS = [
    lambda: print("not JSON"),
    lambda: print('{"compiled": 5}'),
    lambda: print('{"compiled": null, "failure": null}'),
    lambda: print('{"failure": {"kind": "Strange", "code": "x", "message": "' + "y" * 100_000 + '"}}'),
    lambda: print("[" * 100_000),
    lambda: print("z" * (8 << 20)),
    lambda: sys.exit(3),
    lambda: os.kill(os.getpid(), signal.SIGSEGV),
    lambda: os.kill(os.getpid(), signal.SIGKILL),
    lambda: os.kill(os.getpid(), signal.SIGXCPU),
    lambda: time.sleep(3600),
    lambda: (os.close(1), time.sleep(3600)),
    lambda: print("e" * (8 << 20), file=sys.stderr),
    lambda: None,
]


if __name__ == "__main__":
    main()
