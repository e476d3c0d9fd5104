"""The files of the bindings in Rust."""

from __future__ import annotations

from tartlet_bindings.model import Contract
from tartlet_bindings.outputs import ROOT
from tartlet_bindings.reading import world_section
from tartlet_bindings.rust.files import interface_file, interfaces, modules_file, worlds_file


def test_every_interface_for_programs_has_a_module(contract: Contract) -> None:
    """All but those of runners."""
    names = [each.name for each in interfaces(contract)]

    assert set(names) == {each.name for each in contract.world("inferlet").imports} | {"steering"}
    assert all(f"pub mod {name};" in modules_file(contract) for name in names)


def test_a_file_takes_what_it_spells_from_others(contract: Contract) -> None:
    """And nothing else."""
    text = interface_file(contract, contract.interface("log"))

    assert "use super::abi::{Abi};" not in text
    assert "use super::types" not in text
    assert "use super::types::{Error, Event, Token};" in interface_file(contract, contract.interface("contexts"))


def test_worlds_are_the_bytes_that_tools_read(contract: Contract) -> None:
    """As byte strings that Rust reads as what wasm-tools has made."""
    section = world_section(ROOT / "wit", "controller")
    literal = worlds_file(contract).partition("pub const CONTROLLER")[2].partition('b"')[2].partition('";')[0]
    lines = [line.strip().removesuffix("\\") for line in literal.splitlines()]

    assert eval(f'b"{"".join(lines)}"') == section
