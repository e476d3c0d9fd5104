"""Types in C."""

from __future__ import annotations

import pytest

from tartlet_bindings.c.names import Names
from tartlet_bindings.c.types import Types
from tartlet_bindings.model import Contract


@pytest.fixture
def types(small: Contract) -> Types:
    """Nothing is declared yet."""
    return Types(Names(small))


def test_a_type_is_declared_once_after_what_it_is_made_of(small: Contract, types: Types) -> None:
    """What is declared already is not again."""
    _, options, *_ = small.interface("things").types
    lines = types.declare(options)

    declared = [line.split()[-1] for line in lines if line.startswith(("typedef", "}")) and line.endswith(";")]
    assert declared == [
        "tartlet_id;",
        "tartlet_list_id;",
        "tartlet_option_f32;",
        "tartlet_option_string;",
        "tartlet_tuple_id_f32;",
        "tartlet_options;",
    ]
    assert types.declare(options) == []


def test_variants_are_a_number_and_a_union(small: Contract, types: Types) -> None:
    """The cases that have a payload are in the union."""
    text = "\n".join(types.declare(small.interface("things").types[2]))

    assert "  TARTLET_SHAPE_NOTHING,\n  TARTLET_SHAPE_DOT,\n  TARTLET_SHAPE_MANY,\n} tartlet_shape_case;" in text
    assert "  union {\n    tartlet_id dot;\n    tartlet_list_string many;\n  };\n} tartlet_shape;" in text


def test_what_holds_memory_can_be_freed(small: Contract, types: Types) -> None:
    """All the way down, and nothing else; the layout of each type is checked."""
    for kind in small.interface("things").types:
        types.declare(kind)
    text = "\n".join(types.definitions())

    assert "void tartlet_options_free(tartlet_options *value) {\n  tartlet_list_id_free(&value->ids);" in text
    assert "  if (value->which == TARTLET_SHAPE_MANY)\n    tartlet_list_string_free(&value->many);" in text
    assert "  for (size_t i = 0; i < value->length; i++)\n    tartlet_string_free(&value->data[i]);" in text
    assert "tartlet_option_f32_free" not in text
    assert "LAYOUT(tartlet_options, 36, 4);\nOFFSET(tartlet_options, ids, 0);" in text
