"""`python -m tartlet.server.worker.prepare`: makes what all workers need, once.

That is the runner for Python source, which a worker may not build, as it can start no programs, and its native code.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tartlet import paths
from tartlet.errors import TartletError
from tartlet.languages.python import runner_component
from tartlet.server.child_process import end_with_parent, keep_private
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.wasm_engine import process_engine

logger = logging.getLogger("tartlet.server.worker.prepare")


def main() -> int:
    """Build the runner for Python source, and compile it, as far as that has not been done. Gives the exit status."""
    parser = argparse.ArgumentParser("python -m tartlet.server.worker.prepare")
    parser.add_argument("--parent", type=int, required=True, help="the front's process id")
    end_with_parent(parser.parse_args().parent)
    keep_private()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logger.info("making the runner for Python source, which takes some time, once")
    try:
        component = runner_component().read_bytes()
        Compiler(process_engine(), paths.components_folder()).compile(component)
    except TartletError as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
