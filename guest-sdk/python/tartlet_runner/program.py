"""One run of a program: import it, call its inferlet, give its result as JSON or its error as text."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Mapping
from typing import Any

from tartlet_runner import output, stdlib, tracebacks
from tartlet_runner.importer import File, Importer
from tartlet_sdk import event_loop, results, wit
from tartlet_sdk.entry import find_entry
from tartlet_sdk.signature import Signature

UNAVAILABLE = stdlib.import_all()
IMPORTER = Importer()
SCAN = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # the inside of json.loads, which touches fewer pages
SEED = random.seed
LOOP = event_loop.HostLoop()  # made when the component is built, so that it is in the snapshot


class ProgramFailed(Exception):
    """The program failed; the message is text for people."""


def install() -> None:
    """Make this Python interpreter ready to run a program; once, when the component is built."""
    sys.meta_path.insert(0, IMPORTER)
    asyncio.new_event_loop = asyncio.events.new_event_loop = event_loop.HostLoop  # what asyncio.run makes


def leave_seeding_to_run() -> None:
    """Make `random.seed` do nothing until `run` puts it back; the last thing when the component is built.

    componentize-py calls it at the start of every instance, which asks the host ten times for random bytes.
    """
    random.seed = lambda: None  # type: ignore[assignment, misc]


def run(main: str, files: Mapping[str, File], given: Any) -> str:
    """Run the inferlet of module `main` with the input `given`; its result as JSON. Raises only `ProgramFailed`."""
    try:
        random.seed = SEED
        random.seed(wit.runs.info().seed)
        IMPORTER.take(files)
        entry = find_entry(IMPORTER.load_main(main))
        arguments = Signature.of(entry).arguments(given)
        result = entry(**arguments)
        if hasattr(result, "__await__"):
            result = event_loop.run(LOOP, result, entry.__name__)
        return results.to_json(result)
    except SystemExit as error:
        if not error.code:
            return "null"
        raise ProgramFailed(tracebacks.explain(error, files, UNAVAILABLE)) from None
    except BaseException as error:
        raise ProgramFailed(tracebacks.explain(error, files, UNAVAILABLE)) from None
    finally:
        output.STDERR.finish()


def run_json(program: str) -> str:
    """Run what `source.program()` gave."""
    parsed, _ = SCAN(program, 0)
    return run(parsed["main"], parsed["files"], parsed["input"])
