"""A component made of one controller (the world `controller`), as `built_app` is made of an inferlet."""

from __future__ import annotations

import wit_world
from componentize_py_types import Err
from tartlet_program import PROGRAM  # type: ignore[import-not-found]
from wit_world.imports import steering

from tartlet_runner import importer, snapshot, tracebacks
from tartlet_runner.build_error import NotCompiled
from tartlet_runner.controlling import STEERED
from tartlet_runner.program import ProgramFailed

try:
    FILES = importer.compile_files(PROGRAM["files"])
except SyntaxError as error:
    raise NotCompiled(tracebacks.explain(error, PROGRAM["files"], {})) from None


class WitWorld(wit_world.WitWorld):
    """The component's exports."""

    def start(self, config: str, prompt: list[int]) -> steering.StartAnswer:
        """Begin."""
        try:
            return STEERED.start(PROGRAM["main"], FILES, config, prompt)
        except ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # there is no memory left for its text
            raise Err(f"{type(error).__name__}: {error}") from None

    def step(self, outcomes: list[steering.Outcome]) -> list[steering.Decision]:
        """Decide."""
        try:
            return STEERED.step(outcomes)
        except ProgramFailed as error:
            raise Err(str(error)) from None
        except BaseException as error:  # there is no memory left for its text
            raise Err(f"{type(error).__name__}: {error}") from None


snapshot.prepare(snapshot.warm_up_controller)
