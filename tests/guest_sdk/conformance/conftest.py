"""The conformance suite's own modules, and the programs of all languages on the hosts that the cases ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "guest-sdk" / "conformance"))

import languages
import recording
import suite


@pytest.fixture(scope="session")
def called() -> Iterator[set[str]]:
    """The functions of the contract that have been called since it was cleared."""
    with recording.recorded_calls() as names:
        yield names


@pytest.fixture(scope="session")
def run_case(called: set[str]) -> Iterator[Callable[[str, suite.Case], list[str]]]:
    """Runs a case in a language; each has its hosts, made when they are first asked for. Skips without its tools."""
    with ExitStack() as stack:
        built: dict[str, languages.Built | str] = {}
        hosts: dict[tuple[str, str], object] = {}

        def build(language: str) -> languages.Built:
            if language not in built:
                try:
                    built[language] = languages.LANGUAGES[language]()
                except languages.ToolsMissing as error:
                    built[language] = str(error)
            found = built[language]
            if isinstance(found, str):
                pytest.skip(found)
            return found

        def run(language: str, case: suite.Case) -> list[str]:
            program, engine = build(language), "fake" if case.engine == "fake" else "tiny"
            if (language, engine) not in hosts:
                make = suite.fake_host if engine == "fake" else suite.tiny_host
                hosts[language, engine] = stack.enter_context(make(program.controller))
            called.clear()
            return suite.run_case(hosts[language, engine], program.program, case)

        yield run
