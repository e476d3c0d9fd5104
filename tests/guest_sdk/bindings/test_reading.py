"""Reading the contract from wasm-tools' JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet.contract import contract as contract_of_the_host
from tartlet_bindings.model import (
    Alias,
    CannotBindError,
    Contract,
    Enum,
    Handle,
    ListType,
    OptionType,
    Primitive,
    Record,
    Resource,
    ResultType,
    TupleType,
    Variant,
)
from tartlet_bindings.reading import read_contract


def read(tmp_path: Path, text: str) -> Contract:
    (tmp_path / "world.wit").write_text(f"package a:b@1.2.3;\n{text}")
    return read_contract(tmp_path)


def test_it_has_every_item_of_the_contract(contract: Contract) -> None:
    """All that the host's own reader of wit/ finds is there, with its comments."""
    theirs = contract_of_the_host()
    assert {each.name for each in contract.interfaces} == set(theirs.interfaces)
    assert {each.name for each in contract.worlds} == set(theirs.worlds)
    for interface in contract.interfaces:
        known = theirs.interfaces[interface.name]
        assert {function.import_name for function in interface.functions} == set(known.functions)
        assert {kind.name for kind in interface.types} == set(known.types)
        assert all(function.docs == known.functions[function.import_name].docs for function in interface.functions)


def test_types_are_read(tmp_path: Path) -> None:
    """Every form of type that the contract may use has its object."""
    text = """
    interface i {
      type id = u32;
      enum colour { red, green }
      record point { x: f32, y: option<id> }
      variant shape { nothing, dot(point), many(list<point>) }
      resource thing { make: static func(name: string) -> result<thing, colour>; join: func(other: borrow<thing>); }
      f: func(a: tuple<id, f32>, b: shape) -> result;
    }
    world w { import i; export run: func(input: string) -> result<string, string>; }
    """
    contract = read(tmp_path, text)
    interface = contract.interface("i")
    identity, colour, point, shape, thing = interface.types
    assert isinstance(identity, Alias)
    assert isinstance(colour, Enum)
    assert isinstance(point, Record)
    assert isinstance(shape, Variant)
    assert isinstance(thing, Resource)
    make, join, function = interface.functions

    assert interface.module == "a:b/i@1.2.3"
    assert identity.target == Primitive("u32")
    assert [case.name for case in colour.cases] == ["red", "green"]
    assert [field.type for field in point.fields] == [Primitive("f32"), OptionType(identity)]
    assert [case.payload for case in shape.cases] == [None, point, ListType(point)]
    assert thing.functions == [make, join]
    assert (make.kind, make.name, make.resource) == ("static", "make", thing)
    assert make.result == ResultType(Handle(thing, owned=True), colour)
    assert join.parameters == (("self", Handle(thing, owned=False)), ("other", Handle(thing, owned=False)))
    assert function.parameters == (("a", TupleType((identity, Primitive("f32")))), ("b", shape))
    assert function.result == ResultType(None, None)
    assert [each.name for each in contract.world("w").exports] == ["run"]


def test_a_used_type_is_the_one_that_it_names(tmp_path: Path) -> None:
    """`use` makes no second type."""
    contract = read(tmp_path, "interface i { record r { x: u8 } } interface j { use i.{r}; f: func(r: r); }")
    (function,) = contract.interface("j").functions

    assert contract.interface("j").types == ()
    assert function.parameters == (("r", contract.interface("i").types[0]),)


def test_what_it_cannot_bind_is_refused(tmp_path: Path) -> None:
    """A form of type that no emitter knows is an error that names it, not something wrong in a file."""
    with pytest.raises(CannotBindError, match=r"abilities.*flags"):
        read(tmp_path, "interface i { flags abilities { fly, swim } }")


def test_what_is_no_wit_is_refused(tmp_path: Path) -> None:
    """The error is that of wasm-tools."""
    with pytest.raises(SystemExit, match="expected"):
        read(tmp_path, "interface {")
