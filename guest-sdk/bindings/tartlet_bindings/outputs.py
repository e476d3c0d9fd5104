"""All files that are made of the contract, and what is to be in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tartlet_bindings.c import files as c_files
from tartlet_bindings.model import Contract
from tartlet_bindings.reading import read_contract
from tartlet_bindings.rust import files as rust_files

ROOT = Path(__file__).parents[3]
RUST = "guest-sdk/rust/src/wit"

# Paths from the root of the repository, and who writes what is there.
WRITERS: Mapping[str, Callable[[Contract], str]] = {
    "guest-sdk/c/include/tartlet_bindings.h": c_files.header,
    "guest-sdk/c/src/tartlet_bindings.c": c_files.source,
    f"{RUST}/mod.rs": rust_files.modules_file,
    f"{RUST}/component_type.rs": rust_files.worlds_file,
}


def outputs() -> dict[Path, str]:
    """Make all files, without writing any."""
    contract = read_contract(ROOT / "wit")
    written = {path: write(contract) for path, write in WRITERS.items()}
    for interface in rust_files.interfaces(contract):  # each has a file of its own
        written[f"{RUST}/{interface.name}.rs"] = rust_files.interface_file(contract, interface)
    return {ROOT / path: text for path, text in written.items()}
