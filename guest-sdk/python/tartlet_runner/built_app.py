"""A component made of one program (the world `inferlet`). The build puts the program into the module `tartlet_program`.

The program is compiled when the component is built, and imported when it runs: its module-level code may use the host.
"""

from __future__ import annotations

import json

import wit_world
from componentize_py_types import Err
from tartlet_program import PROGRAM  # type: ignore[import-not-found]

from tartlet_runner import importer, program, snapshot, tracebacks
from tartlet_runner.build_error import NotCompiled

try:
    FILES = importer.compile_files(PROGRAM["files"])
except SyntaxError as error:
    raise NotCompiled(tracebacks.explain(error, PROGRAM["files"], {})) from None


class WitWorld(wit_world.WitWorld):
    """The component's export."""

    def run(self, input: str) -> str:
        """Run the program."""
        try:
            return program.run(PROGRAM["main"], FILES, json.loads(input))
        except program.ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # the input is no JSON, or there is no memory left for it
            raise Err(f"{type(error).__name__}: {error}") from None


snapshot.prepare(snapshot.warm_up_inferlet)
