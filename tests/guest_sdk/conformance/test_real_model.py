"""The same program, seed and model give the same tokens in every language."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import languages
import pytest
import suite

pytestmark = [pytest.mark.model, pytest.mark.runner]

CASES = [case for case in suite.read_cases().values() if case.engine == "model"]


@pytest.fixture(scope="module")
def python_lines(real_folder: Path) -> dict[str, list[str]]:
    """What the program in Python tells of each case."""
    with suite.model_host(languages.LANGUAGES["python"], real_folder) as program:
        return {case.name: program.run(case) for case in CASES}


@pytest.fixture(scope="module", params=languages.LANGUAGES)
def port(request: pytest.FixtureRequest, real_folder: Path) -> Iterator[suite.Suite]:
    """The program of a language on the small real model."""
    if missing := languages.missing_tools(request.param):
        pytest.skip(missing)
    with suite.model_host(languages.LANGUAGES[request.param], real_folder) as program:
        yield program


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tokens_are_the_same(case: suite.Case, port: suite.Suite, python_lines: dict[str, list[str]]) -> None:
    """And so are log-probabilities, to the bit."""
    assert python_lines[case.name] == port.run(case)
    assert "failed" not in python_lines[case.name][0]
