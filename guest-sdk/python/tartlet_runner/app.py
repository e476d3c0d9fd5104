"""The runner: one component for every Python inferlet that is given as source (the world `runner`)."""

from __future__ import annotations

import json

import wit_world
from componentize_py_types import Err
from tartlet_runner import importer, program, snapshot
from wit_world.imports import source


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def run(self, input: str) -> str:
        """Run the program that the host gives; its input comes with it, so that the runner can wait for both in advance."""
        try:
            return program.run_json(source.program())
        except program.ProgramFailed as error:
            raise Err(str(error)) from None

    def compile(self) -> str:
        """Compile the files of the program that the host gives."""
        return json.dumps(importer.compile_files(json.loads(source.program())["files"]))


snapshot.prepare()
