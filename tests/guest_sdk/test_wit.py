"""The SDK and the contract."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

import tartlet_sdk
from tartlet.contract import contract
from tartlet.languages.python import guest_sources
from tartlet_sdk import draft, model, run


def names_used() -> set[str]:
    """Every attribute that the SDK's and the runner's code mentions, as such or as a text for `getattr`."""
    files = [file for package in ("tartlet_sdk", "tartlet_runner") for file in (guest_sources() / package).glob("*.py")]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files if file.name != "stub_host.py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def test_the_sdk_uses_every_function_of_the_contract() -> None:
    """A function added to wit/ must find its way into the SDK."""
    used = names_used()
    functions = {
        f"{interface}.{re.split('[.]', item)[-1]}"
        for interface in contract().imports("runner")
        for item in contract().interfaces[interface].functions
    }
    missing = {name for name in functions if name.partition(".")[2].replace("-", "_") not in used}

    assert missing == set()


@pytest.mark.parametrize(
    ("interface", "record", "ours"),
    [
        ("generation", "Usage", draft.Usage),
        ("models", "ModelInfo", model.ModelInfo),
        ("runs", "RunInfo", run.RunInfo),
        ("runs", "Limit", run.RunLimit),
    ],
)
def test_records_have_the_contracts_fields(stub: Any, interface: str, record: str, ours: Any) -> None:
    """A field added to a record of wit/ must find its way into the SDK's class."""
    theirs = getattr(getattr(stub, interface), record)

    assert [field.name for field in fields(ours)] == [field.name for field in fields(theirs)]


def test_the_sdk_can_be_imported_anywhere() -> None:
    """Without a host the package imports, for editors and unit tests; a call says where it would work."""
    code = "import tartlet_sdk as t\ntry: t.Model.default()\nexcept t.OutsideSandbox as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], cwd=guest_sources(), capture_output=True, text=True, check=True)

    assert done.stdout == "this needs the host, and works only in a Tartlet sandbox\nStart it with `tartlet run`.\n"


@pytest.mark.slow
def test_the_sdk_is_typed(bindings: Any) -> None:
    """The SDK and the runner pass mypy --strict against the generated bindings."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--explicit-package-bases",
        "--cache-dir",
        str(bindings / "cache"),
    ]
    command += ["--follow-imports=silent", "-p", "tartlet_sdk", "-p", "tartlet_runner"]
    environment = os.environ | {"MYPYPATH": f"{guest_sources()}{os.pathsep}{bindings}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_all_public_names_exist() -> None:
    """`from tartlet_sdk import *` works."""
    assert [name for name in tartlet_sdk.__all__ if not hasattr(tartlet_sdk, name)] == []
