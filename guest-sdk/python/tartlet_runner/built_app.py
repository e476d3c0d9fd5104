"""A component made of one program (the world `inferlet`). The build puts the program into the module `tartlet_program`.

The program is compiled when the component is built, and imported when it runs: its module-level code may use the host.
"""

from __future__ import annotations

import json

import wit_world
from componentize_py_types import Err
from tartlet_program import PROGRAM  # type: ignore[import-not-found]
from tartlet_runner import program, snapshot


class WitWorld(wit_world.WitWorld):
    """The component's export."""

    def run(self, input: str) -> str:
        """Run the program."""
        try:
            return program.run(PROGRAM["main"], PROGRAM["files"], json.loads(input))
        except program.ProgramFailed as error:
            raise Err(str(error)) from None


snapshot.prepare()
