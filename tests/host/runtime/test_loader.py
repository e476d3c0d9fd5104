from pathlib import Path
from typing import Any

import pytest
import wasmtime

import tartlet
from tartlet.component_limits import EMBEDDED
from tartlet.wasm.compiler import Compiler
from tests.hostile_components import functions, inferlet_with, multiplied

HELLO = "from tartlet_sdk import inferlet\n@inferlet\ndef main():\n    return 'hello'\n"


def test_bytes_and_files_of_a_component(fake: Any, component: Any, tmp_path: Path) -> None:
    """The bytes of a component, and a file with them, are the same program; its name is that of the file."""
    data = component("", data="[1]")
    path = tmp_path / "one.wasm"
    path.write_bytes(data)

    programs = [fake.host.load(given) for given in (data, bytearray(data), path, str(path))]

    assert {program.digest for program in programs} == {programs[0].digest}
    assert [program.name for program in programs] == ["component", "component", "one", "one"]
    assert programs[0].linked is programs[1].linked
    assert [fake.run(program) for program in programs] == [[1]] * 4


@pytest.mark.runner
def test_source_as_text_file_and_folder(fake: Any, tmp_path: Path) -> None:
    """Source text, a .py file and a folder with a main.py all run; modules beside main.py can be imported."""
    file = tmp_path / "hello.py"
    file.write_text(HELLO)
    folder = tmp_path / "greeter"
    folder.mkdir()
    (folder / "main.py").write_text(HELLO.replace("'hello'", "__import__('words').WORD"))
    (folder / "words.py").write_text("WORD = 'hi'\n")

    assert [fake.run(given) for given in (HELLO, file, folder)] == ["hello", "hello", "hi"]
    assert [fake.host.load(given).name for given in (HELLO, file, folder)] == ["main", "hello", "greeter"]
    assert fake.host.load(HELLO, name="mine").name == "mine"


@pytest.mark.runner
def test_source_is_compiled_once(fake: Any) -> None:
    """The program of a source that was loaded before comes with its code."""
    program = fake.host.load(HELLO)

    assert '"code":' in program.files_json
    assert fake.host.load(HELLO).files_json == program.files_json
    assert fake.host.load(HELLO + "\n").digest != program.digest


@pytest.mark.parametrize("missing", ["no_such_program", "no/such.wasm", Path("none.py"), "a\0b", "x" * 5000])
def test_a_path_that_is_not_there(fake: Any, missing: Any) -> None:
    """It says so, and what can be given."""
    with pytest.raises(tartlet.ProgramError, match="there is no file or folder") as caught:
        fake.host.load(missing)

    assert caught.value.code == "not_found"
    assert "a program's folder or file" in caught.value.hint


def test_a_folder_without_a_main(fake: Any, tmp_path: Path) -> None:
    """It is no program, and the message says what a program is."""
    with pytest.raises(tartlet.BuildError, match=r"main\.py"):
        fake.host.load(tmp_path)


def test_a_file_of_another_kind(fake: Any, tmp_path: Path) -> None:
    """A file that is neither Python nor WebAssembly is refused by name."""
    path = tmp_path / "notes.txt"
    path.write_text("hello")

    with pytest.raises(tartlet.InvalidComponentError, match=r"notes\.txt") as caught:
        fake.host.load(path)
    assert caught.value.code == "not_a_component"


def broken(component: Any) -> dict[str, bytes]:
    """Components that cannot run, by the code of the error."""
    good = component("", uses=("log",))
    return {
        "not_a_component": b"PK\x03\x04" + bytes(100),
        "truncated": good[: len(good) // 2],
        "unknown_import": component("", uses=("source",)),
        "wrong_version": good.replace(b"tartlet:inferlet/log@0.1.0", b"tartlet:inferlet/log@0.9.0"),
        "missing_export": good.replace(b"\x03run", b"\x03fun"),
    }


@pytest.mark.parametrize("code", ["not_a_component", "truncated", "unknown_import", "wrong_version", "missing_export"])
def test_what_is_wrong_with_a_component(fake: Any, component: Any, code: str) -> None:
    """Each way of being wrong has its own code, told when it is loaded, and the host goes on."""
    with pytest.raises(tartlet.InvalidComponentError) as caught:
        fake.host.load(broken(component)[code])

    assert caught.value.code == code
    assert fake.run(component("", data="1")) == 1


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (inferlet_with(functions(999_999)), "too_many_functions"),
        (multiplied(9, 10), "too_many_instances"),
    ],
)
def test_what_would_take_gigabytes_to_compile(
    fake: Any, data: bytes, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused by its numbers before it is compiled."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(Compiler, "compile", fail)
    with pytest.raises(tartlet.InvalidComponentError) as caught:
        fake.host.load(data)
    assert caught.value.code == code


def test_a_file_that_is_too_large(fake: Any, tmp_path: Path) -> None:
    """It is not even read."""
    path = tmp_path / "large.wasm"
    with path.open("wb") as file:
        file.truncate(EMBEDDED.max_size_bytes + 1)

    with pytest.raises(tartlet.InvalidComponentError, match="1,073,741,825 bytes") as caught:
        fake.host.load(path)
    assert caught.value.code == "component_too_large"


def test_a_core_module_is_no_component(fake: Any) -> None:
    """Plain WebAssembly is told apart from a component."""
    with pytest.raises(tartlet.InvalidComponentError) as caught:
        fake.host.load(b"\0asm\x01\0\0\0")

    assert caught.value.code == "not_a_component"


@pytest.mark.runner
def test_source_that_does_not_compile(fake: Any) -> None:
    """A syntax error is told with file, line and mark before anything of the program runs."""
    with pytest.raises(tartlet.TartletError, match="SyntaxError") as caught:
        fake.run("from tartlet_sdk import inferlet\n@inferlet\ndef main(:\n    pass\n")

    assert 'File "main.py", line 3' in str(caught.value)


def test_a_component_with_another_signature(fake: Any) -> None:
    """A function whose type is not the contract's is refused at load, with both types, not when it is called."""
    component = wasmtime.wat2wasm(
        """(component
          (import "tartlet:inferlet/log@0.1.0" (instance (export "print" (func (param "text" u32)))))
          (core module $m
            (memory (export "memory") 1)
            (func (export "run") (param i32 i32) (result i32) (i32.const 0))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 8)))
          (core instance $i (instantiate $m))
          (func (export "run") (param "input" string) (result (result string (error string)))
            (canon lift (core func $i "run") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"""
    )

    with pytest.raises(tartlet.InvalidComponentError, match=r"(?s)print.*text: u32.*text: string") as caught:
        fake.host.load(bytes(component))
    assert caught.value.code == "wrong_world"
