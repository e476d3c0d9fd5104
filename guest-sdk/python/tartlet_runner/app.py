"""The runner: one component for every Python program that is given as source (the world `runner`)."""

from __future__ import annotations

import json

import wit_world
from componentize_py_types import Err
from wit_world.imports import source, steering

from tartlet_runner import control as control
from tartlet_runner import importer, program, snapshot, tracebacks
from tartlet_runner.controlling import STEERED


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def run(self, input: str) -> str:
        """Run the program that the host gives, with the input that comes with it: a spare waits for both in here."""
        try:
            return program.run_json(source.program())
        except program.ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # there is no memory left for the program's text
            raise Err(f"{type(error).__name__}: {error}") from None

    def start(self, config: str, prompt: list[int]) -> steering.StartAnswer:
        """Begin as a controller, of the program that the host gives."""
        try:
            given = json.loads(source.program())
            return STEERED.start(given["main"], given["files"], config, prompt)
        except program.ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # there is no memory left for the program's text
            raise Err(f"{type(error).__name__}: {error}") from None

    def step(self, outcomes: list[steering.Outcome]) -> list[steering.Decision]:
        """Decide, as a controller."""
        try:
            return STEERED.step(outcomes)
        except program.ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # there is no memory left for the program's text
            raise Err(f"{type(error).__name__}: {error}") from None

    def compile(self) -> str:
        """Compile the files of the program that the host gives."""
        files = json.loads(source.program())["files"]
        try:
            return json.dumps(importer.compile_files(files))
        except BaseException as error:
            raise Err(tracebacks.explain(error, files, {})) from None


snapshot.prepare(snapshot.warm_up_inferlet, snapshot.warm_up_controller)
