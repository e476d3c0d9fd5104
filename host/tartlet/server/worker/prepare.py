"""`python -m tartlet.server.worker.prepare`: makes what all workers need, once.

Those are the runners for source, which a worker may not build, as it can start no programs, and their native code.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tartlet import paths
from tartlet.errors import TartletError
from tartlet.languages.registry import taken_modes
from tartlet.server.child_process import end_with_parent, keep_private
from tartlet.server.progress_lines import ProgressLines
from tartlet.wasm.compiler import Compiler
from tartlet.wasm.wasm_engine import process_engine

logger = logging.getLogger("tartlet.server.worker.prepare")


def main() -> int:
    """Build the runners for source, and compile them, as far as that has not been done. Gives the exit status."""
    parser = argparse.ArgumentParser("python -m tartlet.server.worker.prepare")
    parser.add_argument("--parent", type=int, required=True, help="the front's process id")
    end_with_parent(parser.parse_args().parent)
    keep_private()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    progress = ProgressLines()
    try:
        compiler = Compiler(process_engine(), paths.components_folder(), progress)
        for mode in taken_modes():
            compiler.compile(mode.runner_component(progress).read_bytes())
    except TartletError as error:
        logger.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
