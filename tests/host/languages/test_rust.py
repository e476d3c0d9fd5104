"""Programs in Rust: how they are built, and what is said when something goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tartlet import sync
from tartlet.contract import contract
from tartlet.errors import BuildError, GuestError, GuestTrapError
from tartlet.events import Output
from tartlet.languages import rust_toolchain
from tartlet.languages.rust import RUST, build_component
from tartlet.languages.rust_toolchain import INSTALL, find_toolchain
from tartlet.testing import FakeEngine

needs_rust = pytest.mark.skipif(find_toolchain() is None, reason=f"Rust for WebAssembly is not installed. {INSTALL}")
MAIN = "use inferlet::*;\n#[inferlet::main]\nasync fn main(args: Args) -> Result<u32> {\n"


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host whose engine echoes the last message."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        yield host
    engine.check_integrity()
    engine.close()


def build(folder: Path, body: str, begin: str = MAIN) -> bytes:
    """Build a program of one file, given the body of its `main`, which begins in line 4."""
    (folder / "program.rs").write_text(begin + body + "\n}\n")
    build_component(folder / "program.rs", folder / "out" / "program.wasm")
    return (folder / "out" / "program.wasm").read_bytes()


@needs_rust
@pytest.mark.slow
def test_a_file_is_a_program(tmp_path: Path, host: sync.Host) -> None:
    """Its input, its result, and all that it prints with the standard library's own macros, in other functions, too."""
    program = build(
        tmp_path,
        'println!("{} é", args.text()); other(); eprint!("no newline"); Ok(args.require::<u32>("n")? + 1) }\n'
        'fn other() { println!("{:>4}", 1.5); ',
    )
    run = host.start(program, {"n": 41})
    text = "".join(event.text for event in run if isinstance(event, Output))

    assert run.result() == 42
    assert text == '{"n": 41} é\n 1.5\nno newline' or text == '{"n":41} é\n 1.5\nno newline'
    assert contract().world_of(program) == "inferlet"


@needs_rust
@pytest.mark.slow
def test_a_failed_call_ends_the_run_with_its_reason(tmp_path: Path, host: sync.Host) -> None:
    """The call, what the host says, and the place in the program; also of what is awaited without a `?`."""
    program = build(
        tmp_path,
        'if args.get_or("panic", false)? { get_auto_model().create_context().fill_tokens(&[u32::MAX]); }\n'
        'if args.get_or("error", false)? { get_model("no such model")?; }\n'
        "let mut context = get_auto_model().create_context();\n"
        "context.generate(Sampler::top_p(1.0, 7.0), StopCondition::default()).await; Ok(1)",
    )
    with pytest.raises(GuestError, match=r"Context\.generate: .*top.p.*7.*\(at program.rs:7:9\)"):
        host.run(program)
    with pytest.raises(GuestError, match=r"get_model: .*no such model"):
        host.run(program, {"error": True})
    with pytest.raises(GuestError, match=r'Args: the argument "error": invalid type'):
        host.run(program, {"error": 7})
    with pytest.raises(GuestTrapError, match=r"Context\.fill_tokens: ") as caught:
        host.run(program, {"panic": True})
    assert "program.rs:4:" in caught.value.message


@needs_rust
@pytest.mark.slow
def test_a_deadlock_is_told(tmp_path: Path, host: sync.Host) -> None:
    """A future that nobody can wake."""
    program = build(tmp_path, "let _ = args; std::future::pending::<()>().await; Ok(1)")

    with pytest.raises(GuestError, match="deadlock: every task waits"):
        host.run(program)


@needs_rust
@pytest.mark.slow
def test_what_the_compiler_says_is_the_error(tmp_path: Path) -> None:
    """With the file's name and the line; nothing is left of an earlier build."""
    with pytest.raises(BuildError, match=r"cannot find value `nothing`[^$]*program.rs:4:1"):
        build(tmp_path, "nothing")
    assert not (tmp_path / "out" / "program.wasm").exists()


@needs_rust
@pytest.mark.slow
def test_a_crate_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    """Where crates come from Debian's packages alone."""
    if not isinstance(find_toolchain(), rust_toolchain.Debian):
        pytest.skip("only of Debian's Rust")
    manifest = '[package]\nname = "a"\n[lib]\ncrate-type = ["cdylib"]\n[dependencies]\nno-such-crate-at-all = "1"\n'
    (tmp_path / "Cargo.toml").write_text(manifest)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").touch()

    with pytest.raises(BuildError, match="no-such-crate-at-all") as caught:
        build_component(tmp_path, tmp_path / "out.wasm")
    assert "librust-NAME-dev" in caught.value.hint


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (None, "has no Cargo.toml"),
        ("[package", "cannot be read"),
        ('[package]\nname = "a"\n', "no library of the kind cdylib"),
    ],
)
def test_what_is_no_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manifest: str | None, says: str
) -> None:
    """Before anything is compiled."""
    monkeypatch.setattr("tartlet.languages.rust.require_toolchain", lambda: None)
    if manifest is not None:
        (tmp_path / "Cargo.toml").write_text(manifest)

    with pytest.raises(BuildError, match=says):
        build_component(tmp_path, tmp_path / "out.wasm")


def test_its_tools_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust itself, with the ways to install it."""
    monkeypatch.setattr(rust_toolchain, "find_toolchain", lambda: None)
    tools = RUST.tools()

    assert [tool.name for tool in tools] == ["Rust", "wasm-tools"]
    assert tools[0].version is None
    assert "rustup" in tools[0].hint
