"""The contract, and whether components keep to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from wasmtime.component import Component

from tartlet.contract import Contract, contract, merge
from tartlet.errors import InvalidComponentError
from tartlet.wasm.signatures import imported_signatures
from tartlet.wasm.wasm_engine import WasmEngine, process_engine
from tartlet.wit_parser import parse

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def engine() -> WasmEngine:
    """The engine of this process."""
    return process_engine()


@pytest.fixture(scope="module")
def dummy(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A component of the largest world, which imports everything and traps when run; made by wasm-tools."""
    folder = tmp_path_factory.mktemp("dummy")
    tool = Path(sys.executable).parent / "wasm-tools"
    embed = [tool, "component", "embed", "--dummy", ROOT / "wit", "-w", "runner", "-o", folder / "core.wasm"]
    subprocess.run(embed, check=True)
    subprocess.run([tool, "component", "new", folder / "core.wasm", "-o", folder / "all.wasm"], check=True)
    return (folder / "all.wasm").read_bytes()


def test_packaged_contract_is_that_of_the_repository() -> None:
    """The package has every file of wit/."""
    from_repository = merge([parse(path.read_text()) for path in sorted((ROOT / "wit").glob("*.wit"))])

    assert contract() == from_repository


def test_every_item_has_a_doc_comment() -> None:
    """Interfaces, types, functions and worlds say what they are for."""
    undocumented = []
    for interface in contract().interfaces.values():
        items = {interface.name: interface.docs}
        items |= {f"{interface.name}.{name}": item.docs for name, item in interface.types.items()}
        items |= {f"{interface.name}.{name}": item.docs for name, item in interface.functions.items()}
        undocumented += [name for name, docs in items.items() if not docs]
    undocumented += [world.name for world in contract().worlds.values() if not world.docs]

    assert undocumented == []


def test_at_most_one_borrow_in_a_call() -> None:
    """No function takes two borrows, which Wasmtime 50.0 cannot pass."""
    for interface in contract().interfaces:
        for name, signature in contract().signatures(interface).items():
            assert signature.count("borrow<") <= 1, f"{interface}.{name}"


def test_signatures_are_those_of_real_components(engine: WasmEngine, dummy: bytes) -> None:
    """What wasm-tools makes of wit/ has the very signatures that we read in it, for every function."""
    found = imported_signatures(engine, Component(engine.engine, dummy))

    assert found == {contract().full_name(name): contract().signatures(name) for name in contract().interfaces}


def test_component_that_keeps_to_the_contract(engine: WasmEngine, dummy: bytes) -> None:
    """A component of the world passes both checks."""
    contract().check_component(dummy, "runner")
    contract().check_types(engine, Component(engine.engine, dummy), "runner")


def test_component_of_a_larger_world(dummy: bytes) -> None:
    """An interface that the world does not have is refused by name."""
    with pytest.raises(InvalidComponentError, match=r"tartlet:inferlet/source@0\.1\.0, which this host does not offer"):
        contract().check_component(dummy, "inferlet")


def changed(old: str, new: str) -> Contract:
    """The contract after a change of its text."""
    texts = [path.read_text() for path in sorted((ROOT / "wit").glob("*.wit"))]
    assert any(old in text for text in texts)
    return merge([parse(text.replace(old, new)) for text in texts])


@pytest.mark.parametrize(
    ("old", "new", "function"),
    [
        ("timer: func(delay-ns: u64)", "timer: func(delay-ns: u32)", "events: the function timer"),
        ("timer: func(delay-ns: u64)", "timer: func(delay: u64)", "events: the function timer"),
        ("timer: func(delay-ns: u64) -> event;", "", "events: the function timer"),
        ("length: func() -> u32;", "length: func() -> u64;", r"contexts: the function \[method\]context.length"),
        ("export run: func(input: string)", "export run: func(input: list<u8>)", "the function run"),
    ],
)
def test_component_with_other_types(engine: WasmEngine, dummy: bytes, old: str, new: str, function: str) -> None:
    """A function of another type is refused, with its name and both signatures."""
    with pytest.raises(InvalidComponentError, match=function) as caught:
        changed(old, new).check_types(engine, Component(engine.engine, dummy), "runner")

    assert caught.value.code == "wrong_world"
    assert "component: func(" in caught.value.message
    assert "contract:  " in caught.value.message


def test_interfaces_of_worlds() -> None:
    """A world has what it includes, and its own."""
    inferlet, runner = contract().imports("inferlet"), contract().imports("runner")

    assert runner == [*inferlet, "steering", "source"]
    assert set(contract().imports("controller")) < set(runner)
    assert contract().exports("inferlet") == {"run": "func(input: string) -> result<string, string>"}
    assert list(contract().exports("runner")) == ["run", "start", "step", "compile"]
    assert contract().exports("controller")["step"].startswith("func(outcomes: list<record{sequence: u32, ")


def test_files_of_different_packages() -> None:
    """Files of two packages or versions are not one contract."""
    with pytest.raises(ValueError, match="not of one package and version"):
        merge([parse("package a:b@1.0.0;"), parse("package a:b@1.0.1;")])
