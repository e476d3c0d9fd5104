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
def language(request: pytest.FixtureRequest) -> str:
    """Each of them."""
    return str(request.param)


@pytest.fixture(scope="module")
def port(language: str, real_folder: Path) -> Iterator[suite.Suite]:
    """The program of a language on the small real model."""
    if missing := languages.missing_tools(language):
        pytest.skip(missing)
    with suite.model_host(languages.LANGUAGES[language], real_folder) as program:
        yield program


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tokens_are_the_same(
    case: suite.Case, language: str, port: suite.Suite, python_lines: dict[str, list[str]]
) -> None:
    """And so are log-probabilities, to the bit."""
    if reason := languages.NOT_THERE[language].get(case.name):
        pytest.skip(reason)
    assert python_lines[case.name] == port.run(case)
    assert "failed" not in python_lines[case.name][0]
