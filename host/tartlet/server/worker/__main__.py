"""`python -m tartlet.server.worker`: started by the front, which is at the other end of an inherited socket."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from tartlet.server.child_process import end_with_parent, give_up_rights, keep_private
from tartlet.server.worker.files import give_up_files

logger = logging.getLogger("tartlet.server.worker")


def main() -> None:
    """Serve until the front closes the connection, or the process is told to end."""
    parser = argparse.ArgumentParser("python -m tartlet.server.worker")
    parser.add_argument("--parent", type=int, required=True, help="the front's process id")
    parser.add_argument("--front", type=int, required=True, help="the number of the inherited socket")
    parser.add_argument("--spares", type=int, required=True, help="Python runners kept ready")
    settings = parser.parse_args()
    end_with_parent(settings.parent)
    can_restrict = give_up_files()
    can_forbid = give_up_rights()  # before `keep_private`, after which the system lets nobody write its score
    keep_private()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    if not can_forbid:
        logger.warning("this kernel has no seccomp: workers can use the network, and start programs")
    if not can_restrict:
        logger.warning("this kernel has no Landlock: workers can use the files of the server's user")
    from tartlet.server.worker.worker import work

    asyncio.run(work(settings.front, num_spares=settings.spares))


main()
