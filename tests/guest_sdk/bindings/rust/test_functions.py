"""Functions of the host in Rust."""

from __future__ import annotations

from tartlet_bindings.model import Contract
from tartlet_bindings.rust.functions import function


def written(contract: Contract, interface: str, import_name: str) -> str:
    found = contract.interface(interface)
    each = next(each for each in found.functions if each.import_name == import_name)
    return "\n".join(function(each, found.module))


def test_text_and_options_are_passed_flat(contract: Contract) -> None:
    """An address and a length for text; for an option, whether there is something comes first."""
    text = written(contract, "models", "[static]model.open")

    assert "pub fn open(name: Option<&str>) -> Result<Model, Error> {" in text
    assert "fn call(_: u32, _: u32, _: u32, _: u32);" in text  # the last is where the result goes
    assert "Some(value) => (1, value.as_ptr() as u32, value.len() as u32)," in text
    assert "None => (0, 0, 0)," in text


def test_many_parameters_are_put_in_memory(contract: Contract) -> None:
    """Where they are too many, one address is passed."""
    text = written(contract, "generation", "generate")

    assert "fn call(_: u32, _: u32);" in text
    assert "context.handle().store(arguments, &mut arena);" in text
    assert "sampling.store(arguments.add(8), &mut arena);" in text  # aligned to 8, for the seed


def test_single_results_come_back_at_once(contract: Contract) -> None:
    """Numbers need no memory, and a bool is made of one."""
    assert "unsafe { call(delay_ns) }" in written(contract, "events", "timer")
    assert "fn call(_: u32) -> u32;" in written(contract, "constraints", "[method]mask.count")


def test_the_import_is_named_as_components_import_it(contract: Contract) -> None:
    """With package and version."""
    text = written(contract, "log", "print")

    assert '#[link(wasm_import_module = "tartlet:inferlet/log@0.1.0")]' in text
    assert '#[link_name = "print"]' in text
