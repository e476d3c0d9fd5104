"""All files that are made of the contract, and what is to be in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tartlet_bindings.c import files
from tartlet_bindings.model import Contract
from tartlet_bindings.reading import read_contract

ROOT = Path(__file__).parents[3]

# Paths from the root of the repository, and who writes what is there.
WRITERS: Mapping[str, Callable[[Contract], str]] = {
    "guest-sdk/c/include/tartlet_bindings.h": files.header,
    "guest-sdk/c/src/tartlet_bindings.c": files.source,
}


def outputs() -> dict[Path, str]:
    """Make all files, without writing any."""
    contract = read_contract(ROOT / "wit")
    return {ROOT / path: write(contract) for path, write in WRITERS.items()}
