"""How Rust spells names and types."""

from __future__ import annotations

from tartlet_bindings.model import Contract, Function, ListType, OptionType, Primitive, Record, ResultType, TupleType
from tartlet_bindings.rust.names import camel, comment, owned, parameter, snake


def test_names_are_spelled_as_rust_does() -> None:
    """Functions in snake case, types in camel case; a keyword becomes a raw name."""
    assert (snake("fill-tokens"), snake("type"), camel("kv-exhausted")) == ("fill_tokens", "r#type", "KvExhausted")


def test_values_are_owned_and_parameters_lent(contract: Contract) -> None:
    """Text, lists, records and resources are lent to calls; numbers are copied."""
    text, number = Primitive("string"), Primitive("u32")
    sampling = next(kind for kind in contract.interface("generation").types if kind.name == "sampling")
    assert isinstance(sampling, Record)

    assert owned(ResultType(ListType(TupleType((number, OptionType(text)))), None)) == (
        "Result<Vec<(u32, Option<String>)>, ()>"
    )
    kinds = [text, ListType(text), OptionType(text), OptionType(number), sampling, number]
    spelled = ["&str", "&[String]", "Option<&str>", "Option<u32>", "&Sampling", "u32"]
    assert [parameter(kind) for kind in kinds] == spelled


def test_resources_are_called_by_their_own_names(contract: Contract) -> None:
    """A method's `self` is lent."""
    fork: Function = next(each for each in contract.interface("contexts").functions if each.name == "fork")

    assert parameter(fork.parameters[0][1]) == "&Context"
    assert owned(fork.result) == "Result<Context, Error>"


def test_comments_keep_their_lines() -> None:
    """Without blanks at their ends."""
    assert comment("One.\n\nTwo.", "  ") == ["  /// One.", "  ///", "  /// Two."]
    assert comment("") == []
