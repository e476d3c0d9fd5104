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
def calls() -> dict[tuple[str, str], set[str]]:
    """The functions of the contract that have been called, by language and case, of what has been run so far."""
    return {}


RunCase = Callable[[str, suite.Case], list[str]]


@pytest.fixture(scope="session")
def run_case(calls: dict[tuple[str, str], set[str]]) -> Iterator[RunCase]:
    """Runs a case in a language; each has its hosts, made when they are first asked for. Skips without its tools."""
    with recording.recorded_calls() as called, ExitStack() as stack:
        hosts: dict[tuple[str, object], suite.Suite] = {}

        def run(language: str, case: suite.Case) -> list[str]:
            if missing := languages.missing_tools(language):
                pytest.skip(missing)
            make = suite.HOSTS[case.engine]
            if (language, make) not in hosts:
                hosts[language, make] = stack.enter_context(make(languages.LANGUAGES[language]))
            called.clear()
            lines = hosts[language, make].run(case)
            calls[language, case.name] = set(called)
            return lines

        yield run
