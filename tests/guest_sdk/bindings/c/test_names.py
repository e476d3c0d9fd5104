"""What things are called in C."""

from __future__ import annotations

import pytest

from tartlet_bindings.c.names import Names, comment, variable
from tartlet_bindings.model import Contract, ListType, OptionType, Primitive, ResultType, TupleType


def test_types_have_their_own_names_where_they_can(small: Contract) -> None:
    """With the interface's before it where two interfaces have one, or a function would be called the same."""
    names = Names(small)
    things = {kind.name: names.type(kind) for kind in small.interface("things").types}
    (item,) = small.interface("others").types
    (other,) = small.interface("more").types

    assert things == {
        "id": "tartlet_id",
        "options": "tartlet_options",
        "shape": "tartlet_shape",
        "thing": "tartlet_thing",
    }
    assert names.type(item) == "tartlet_others_item"
    assert names.type(other) == "tartlet_more_item"
    assert Names(small).constant(small.interface("types").types[0], "worse") == "TARTLET_ERROR_CODE_WORSE"


def test_types_without_a_name_are_called_after_what_they_are_made_of(small: Contract) -> None:
    """Lists, options, tuples and results."""
    names, text = Names(small), Primitive("string")

    assert names.type(text) == "tartlet_string"
    assert names.type(ListType(OptionType(text))) == "tartlet_list_option_string"
    assert names.type(TupleType((text, Primitive("u8")))) == "tartlet_tuple_string_u8"
    assert names.type(ResultType(None, text)) == "tartlet_result_none_string"


def test_functions_are_called_after_their_owner(small: Contract) -> None:
    """The resource of a method, the interface of any other."""
    things = small.interface("things")
    names = [Names(small).function(things, function) for function in things.functions]

    assert names[0] == "tartlet_thing_make"
    assert names[-1] == "tartlet_things_many"


@pytest.mark.parametrize(("name", "ours"), [("max-tokens", "max_tokens"), ("default", "default_"), ("const", "const_")])
def test_words_of_c_are_avoided(name: str, ours: str) -> None:
    """A field or parameter that C could not have gets an underscore."""
    assert variable(name) == ours


def test_comments() -> None:
    """A text of some lines is one comment; no text is none."""
    assert comment("") == []
    assert comment("One.") == ["/** One. */"]
    assert comment("One.\n\nTwo.", "  ") == ["  /** One.", "   *", "   * Two. */"]
