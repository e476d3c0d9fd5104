"""Types of the contract in Rust."""

from __future__ import annotations

from tartlet_bindings.model import Contract
from tartlet_bindings.rust.types import Directions, definition


def written(contract: Contract, interface: str, name: str) -> str:
    found = contract.interface(interface)
    kind = next(kind for kind in found.types if kind.name == name)
    return "\n".join(definition(kind, found, Directions(contract)))


def test_records_know_their_offsets(contract: Contract) -> None:
    """Each field is where the canonical ABI has it, with what fills it up."""
    text = written(contract, "generation", "sampling")

    assert "const SIZE: usize = 56;" in text
    assert "const ALIGN: usize = 8;" in text
    assert "self.seed.store(at.add(40), arena);" in text


def test_what_only_one_side_gives_is_only_written_or_read(contract: Contract) -> None:
    """The program gives options and gets chunks."""
    assert "impl Load" not in written(contract, "generation", "options")
    assert "impl Store" not in written(contract, "generation", "chunk")


def test_enums_are_bytes(contract: Contract) -> None:
    """In the order of their cases; whatever the host gives becomes one of them."""
    text = written(contract, "types", "error-code")

    assert "0 => Self::InvalidArgument," in text
    assert "_ => Self::ProgramFailed," in text


def test_variants_have_their_payloads_behind_the_number(contract: Contract) -> None:
    """Aligned as the payloads are."""
    text = written(contract, "steering", "decision")

    assert "Self::GoOn => at.write(0)," in text
    assert "value.store(at.add(4), arena);" in text


def test_resources_are_dropped_once(contract: Contract) -> None:
    """Their handle belongs to one value, which gives it back."""
    text = written(contract, "contexts", "opening")

    assert '#[link_name = "[resource-drop]opening"]' in text
    assert "pub fn take(&self) -> Result<Context, Error> {" in text
    assert "Clone" not in text
