"""Functions in C."""

from __future__ import annotations

import pytest

from tartlet_bindings.c.functions import Functions
from tartlet_bindings.c.names import Names
from tartlet_bindings.c.types import Types
from tartlet_bindings.model import Contract


@pytest.fixture
def functions(small: Contract) -> Functions:
    """Nothing is declared yet."""
    names = Names(small)
    return Functions(names, Types(names))


def definition(small: Contract, functions: Functions, name: str) -> str:
    things = small.interface("things")
    (function,) = (each for each in things.functions if each.name == name)
    return "\n".join(functions.definition(things, function))


def test_records_are_flattened_and_failures_told(small: Contract, functions: Functions) -> None:
    """Each field is an argument of the host's function; a refused call is told with its name, and gives zeros."""
    text = definition(small, functions, "make")

    assert 'IMPORT("a:b/things@1.0.0", "[static]thing.make")' in text
    assert "tartlet_thing tartlet_thing_make(const tartlet_options *options, tartlet_failure *failure) {" in text
    assert "  if (failure && failure->call) return (tartlet_thing){0};" in text
    assert "ADDRESS(options->ids.data), (int32_t)options->ids.length" in text
    assert "(int32_t)options->weight.is_some, (float)options->weight.value" in text
    assert 'tartlet_refused("tartlet_thing_make", &returned.error, failure);' in text


def test_too_many_arguments_are_passed_in_memory(small: Contract, functions: Functions) -> None:
    """As one struct, whose address is passed."""
    text = definition(small, functions, "many")

    assert "  } arguments = {*a, *b, c};" in text
    assert "import_things_many(ADDRESS(&arguments), ADDRESS(&returned));" in text


def test_what_cannot_fail_is_returned_as_it_is(small: Contract, functions: Functions) -> None:
    """A number at once, anything larger through memory; neither has a parameter for a failure."""
    assert "  return (bool)import_thing_const(self.handle, (int32_t)default_);" in definition(small, functions, "const")
    shape = definition(small, functions, "shape")
    assert "tartlet_shape tartlet_thing_shape(tartlet_thing self) {\n  tartlet_shape returned;" in shape


def test_exports_call_the_program(small: Contract, functions: Functions) -> None:
    """The arguments of the call before are freed, the new ones given to the program."""
    (step,) = small.world("controller").exports
    text = "\n".join(functions.export_definition(step))

    assert '__attribute__((export_name("step")))' in text
    assert "  tartlet_list_string_free(&items);" in text
    assert "  returned = step(items);" in text
