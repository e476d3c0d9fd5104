"""The same program gives the same transcript in every language."""

from __future__ import annotations

from collections.abc import Callable

import languages
import pytest
import suite

from tartlet.contract import contract

CASES = suite.read_cases()
TRANSCRIPTS = suite.read_transcripts()
FUNCTIONS = {
    f"{interface.name}.{item.rpartition(']')[2]}"
    for interface in contract().interfaces.values()
    if interface.name != "source"
    for item in interface.functions
}

pytestmark = pytest.mark.runner

EACH = [
    pytest.param(language, name, id=f"{language}-{name}")
    for language in languages.LANGUAGES
    for name in CASES
    if name not in languages.NOT_THERE[language]
]


@pytest.mark.parametrize(("language", "name"), EACH)
def test_transcript(
    language: str, name: str, run_case: Callable[[str, suite.Case], list[str]], calls: dict[tuple[str, str], set[str]]
) -> None:
    """A case tells what is kept, or what the program in Python tells; and calls the function that it is named after."""
    case = CASES[name]
    expected = TRANSCRIPTS[name] if case.engine != "model" else run_case("python", case)

    assert run_case(language, case) == expected
    assert name not in FUNCTIONS or name in calls[language, name]


@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_a_language_has_all_cases(language: str, run_case: Callable[[str, suite.Case], list[str]]) -> None:
    """All but those that are excused by name, of which it has none."""
    assert run_case(language, suite.Case("list", "")) == sorted(set(CASES) - set(languages.NOT_THERE[language]))


def test_every_function_of_the_contract_has_a_case() -> None:
    """A function that is added to the contract needs one of its name."""
    assert FUNCTIONS - set(CASES) == set()


def test_transcripts_are_those_of_the_cases() -> None:
    """None is left over or missing; those of models are not kept."""
    assert set(TRANSCRIPTS) == {name for name, case in CASES.items() if case.engine != "model"}


def test_those_who_are_excused_are_known() -> None:
    """The table of excuses names languages and cases that there are."""
    assert set(languages.NOT_THERE) == set(languages.LANGUAGES)
    assert {name for excused in languages.NOT_THERE.values() for name in excused} <= set(CASES)


def test_every_error_of_the_contract_is_met() -> None:
    """But for permission-denied: nothing in the host refuses anything with that, so far."""
    codes = {member.name for member in contract().interfaces["types"].types["error-code"].members}
    told = "\n".join(line for lines in TRANSCRIPTS.values() for line in lines)

    met = {code for code in codes if f"error {code}, " in told or f'"{code}"' in told}

    assert codes - met == {"permission-denied"}
