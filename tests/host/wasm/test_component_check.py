"""Checks before compiling: imports, versions, exports."""

from __future__ import annotations

import pytest
from wasmtime import wat2wasm

from tartlet.errors import InvalidComponentError
from tartlet.wasm.component_check import check_component
from tests.hostile_components import exports_named, imports_named

OFFERED = ["test:host/ops@0.1.2", "test:host/stable@1.2.0"]


def component(*imports: str, exports: tuple[str, ...] = ("run",)) -> bytes:
    """A component that imports interfaces, and exports functions (or, with a colon in the name, interfaces)."""
    lines = [f'(import "{name}" (instance))' for name in imports]
    lines += ['(core module $m (func (export "f")))', "(core instance $i (instantiate $m))"]
    lines += ['(func $f (canon lift (core func $i "f")))', "(instance $empty)"]
    lines += [f'(export "{name}" ({"instance $empty" if ":" in name else "func $f"}))' for name in exports]
    return bytes(wat2wasm(f"(component {' '.join(lines)})"))


@pytest.mark.parametrize(
    "imports",
    [
        (),
        ("test:host/ops@0.1.2",),
        ("test:host/ops@0.1.0", "test:host/stable@1.0.7"),
        ("wasi:cli/environment@0.2.9", "wasi:io/poll@0.2.0", "wasi:sockets/tcp@0.2.3", "wasi:filesystem/types@0.2.6"),
    ],
)
def test_accepted(imports: tuple[str, ...]) -> None:
    """The same and older compatible versions, and WASI 0.2, are accepted."""
    check_component(component(*imports), OFFERED, ["run"])


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"nonsense", "not_a_component", "not a WebAssembly component"),
        (component("test:host/more@0.1.0"), "unknown_import", "imports the interface test:host/more@0.1.0"),
        (component("wasi:http/types@0.2.0"), "unknown_import", "imports the interface wasi:http/types@0.2.0"),
        (
            component("test:host/ops@0.2.0"),
            "wrong_version",
            "built for test:host@0.2.0, this host offers test:host@0.1.2",
        ),
        (component("test:host/ops@0.1.3"), "wrong_version", "built for test:host@0.1.3"),
        (component("test:host/ops"), "wrong_version", "built for test:host@(no version)"),
        (component("test:host/ops@0.1.0-beta"), "wrong_version", "built for test:host@0.1.0-beta"),
        (component("test:host/stable@2.0.0"), "wrong_version", "built for test:host@2.0.0"),
        (component("wasi:io/poll@0.3.0"), "wrong_version", "built for wasi:io@0.3.0, this host offers 0.2"),
        (component(exports=()), "missing_export", "does not export the function run"),
        (component(exports=("test:x/run",)), "missing_export", "does not export the function run"),
        (
            component(exports=("wasi:cli/run@0.2.0",)),
            "wrong_world",
            "the component is a command-line program (it exports wasi:cli/run@0.2.0), not an inferlet",
        ),
    ],
)
def test_refused(data: bytes, code: str, message: str) -> None:
    """Each reason has its code, and names what is wrong."""
    with pytest.raises(InvalidComponentError) as caught:
        check_component(data, OFFERED, ["run"])
    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "test:host/ops@" + "9" * 5000,
        "test:host/ops@0." + "1" * 5000 + ".0",
        "test:host/ops@" + "1." * 50_000,
        "wasi:io/poll@" + "7" * 5000,
        "\x1b[2J" + "x" * 100_000,
        "test:host/ops\r\n@",
        "@",
        "/",
        "",
    ],
)
def test_names_that_are_made_to_do_harm(name: str) -> None:
    """They are refused as others are, shown shortly, and without what a terminal would obey."""
    for data in (imports_named(name), exports_named(name)):
        with pytest.raises(InvalidComponentError) as caught:
            check_component(data, OFFERED, ["main"])
        assert len(str(caught.value)) < 600
        assert "".join(str(caught.value).splitlines()).isprintable()


def test_many_exports_are_not_all_listed() -> None:
    """The first twenty are."""
    data = component(exports=tuple(f"f{number}" for number in range(25)))
    with pytest.raises(InvalidComponentError) as caught:
        check_component(data, OFFERED, ["run"])
    assert "the function f19, 5 more" in caught.value.hint


def test_unknown_import_lists_what_is_offered() -> None:
    """The hint lists all that may be imported."""
    with pytest.raises(InvalidComponentError) as caught:
        check_component(component("test:host/more@0.1.0"), OFFERED, ["run"])
    assert "test:host/ops@0.1.2, test:host/stable@1.2.0; and of WASI 0.2: cli, clocks" in caught.value.hint


def test_imported_function() -> None:
    """A function that is imported outside an interface is unknown."""
    data = bytes(wat2wasm('(component (import "op" (func)))'))

    with pytest.raises(InvalidComponentError, match="imports the function op"):
        check_component(data, OFFERED, [])
