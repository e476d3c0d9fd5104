"""One controller of a program: import it, make its `Controller`, and hand over what the host calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from tartlet_runner import output, tracebacks
from tartlet_runner.importer import File
from tartlet_runner.program import IMPORTER, SEED, UNAVAILABLE, ProgramFailed
from tartlet_sdk import wit
from tartlet_sdk.controller import Controller
from tartlet_sdk.errors import ProgramError
from tartlet_sdk.steering import Steering

if TYPE_CHECKING:
    from wit_world.imports import steering as wit_steering

T = TypeVar("T")


class Steered:
    """The program, once `start` has been called."""

    def __init__(self) -> None:
        self._steering: Steering | None = None
        self._files: Mapping[str, File] = {}

    def start(self, main: str, files: Mapping[str, File], config: str, prompt: list[int]) -> wit_steering.StartAnswer:
        """Import the program, and let its controller begin. Raises only `ProgramFailed`."""
        self._files = files

        def begin() -> wit_steering.StartAnswer:
            random.seed = SEED
            random.seed(wit.runs.info().seed)
            IMPORTER.take(files)
            self._steering = Steering(find_controller(IMPORTER.load_main(main))())
            return self._steering.start(config, prompt)

        return self._explained(begin)

    def step(self, outcomes: list[wit_steering.Outcome]) -> list[wit_steering.Decision]:
        """Let the controller decide. Raises only `ProgramFailed`."""
        steering = self._steering
        assert steering is not None
        return self._explained(lambda: steering.step(outcomes))

    def _explained(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except BaseException as error:
            raise ProgramFailed(tracebacks.explain(error, self._files, UNAVAILABLE)) from None
        finally:
            output.STDERR.finish()


def find_controller(module: ModuleType) -> type[Controller]:
    """The module's subclass of `Controller`: its own, not one that it imports."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Controller)]
    own = [each for each in dict.fromkeys(classes) if each.__module__ == module.__name__]
    leaves = [each for each in own if not any(other is not each and issubclass(other, each) for other in own)]
    if not leaves:
        raise ProgramError(f"{module.__name__}.py defines no subclass of Controller", hint="Define one.")
    if len(leaves) > 1:
        names = ", ".join(each.__name__ for each in leaves)
        raise ProgramError(f"{module.__name__}.py defines several controllers: {names}", hint="Keep one in a file.")
    return leaves[0]


STEERED = Steered()
