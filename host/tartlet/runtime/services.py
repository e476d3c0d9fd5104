"""What all runs of a host share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tartlet.runtime.engine_link import EngineLink
from tartlet.wasm.executor import Executor


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that a run works with."""

    executor: Executor
    link: EngineLink
    workers: ThreadPoolExecutor
    """For what takes long on the host's side, such as the tokens of a big text."""
