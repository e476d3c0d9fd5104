"""The contract, the bindings and the SDKs stay together: what one has, all have."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import languages
import pytest
import suite

from tartlet.contract import contract
from tartlet.wit_parser import Function

NO_PROGRAM_CALLS = {"source.program"}
"""Only the runners call it, before there is a program."""

CASES = suite.read_cases()


def name_of(interface: str, function: Function) -> str:
    """As cases are named: `contexts.context.fork`."""
    return f"{interface}.{function.item_name.rpartition(']')[2]}"


def functions_of(world: str) -> dict[str, Function]:
    """All functions that programs of a world may call, by name."""
    return {
        name_of(interface, function): function
        for interface in contract().imports(world)
        for function in contract().interfaces[interface].functions.values()
    }


@pytest.mark.runner
@pytest.mark.parametrize("language", languages.LANGUAGES)
def test_an_sdk_reaches_every_function(
    language: str, run_case: Callable[[str, suite.Case], list[str]], calls: dict[tuple[str, str], set[str]]
) -> None:
    """Cases that only use the SDK call each function of the contract, but for those of which a reason is known."""
    reached: set[str] = set()
    for case in CASES.values():
        if not case.uses_bindings and case.engine != "model" and case.name not in languages.NOT_THERE[language]:
            if (language, case.name) not in calls:
                run_case(language, case)
            reached |= calls[language, case.name]

    assert set(functions_of("inferlet")) - reached == set(languages.NOT_REACHED[language])


def test_the_stub_of_the_host_has_every_function() -> None:
    """With which the runner in Python is warmed up, with as many arguments; but for those of controllers."""
    from tartlet_runner import stub_host

    def stub(name: str) -> Callable[..., object]:
        interface, *path = name.replace("-", "_").split(".")
        if len(path) == 1:
            return stub_host.REPLACED[interface][path[0]]
        return getattr(getattr(stub_host, path[0].capitalize()), path[1])

    offered = {name: each for name, each in functions_of("inferlet").items() if not name.startswith("controllers.")}

    assert {name: len(inspect.signature(stub(name)).parameters) for name in offered} == {
        name: len(function.parameters) for name, function in offered.items()
    }
