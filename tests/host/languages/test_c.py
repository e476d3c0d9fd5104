"""Programs in C: how they are built, and what they and the host say when something goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path

import pytest

from tartlet import sync
from tartlet.contract import contract
from tartlet.errors import BuildError, GuestTrapError
from tartlet.events import Log, Output
from tartlet.languages.c import C, build_component
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.slow  # the first build compiles the C library

Build = Callable[..., bytes]
INCLUDES = '#include <stdio.h>\n#include <stdlib.h>\n#include <assert.h>\n#include "tartlet.h"\n'


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds a program of one file, given the body of its `run`, which begins in line 5."""

    def build(body: str) -> bytes:
        source, output = tmp_path / "main.c", tmp_path / "out" / "program.wasm"
        source.write_text(f"{INCLUDES}tartlet_result run(tartlet_string input) {{ (void)input; {body} }}\n")
        build_component(source, output)
        return output.read_bytes()

    return build


@pytest.fixture(scope="module")
def host() -> Iterator[sync.Host]:
    """A host whose engine echoes the last message."""
    engine = FakeEngine()
    with sync.Host(engine=engine) as host:
        yield host
    engine.close()


def test_a_program_runs(build: Build, host: sync.Host) -> None:
    """What `run` returns is the result, what is printed its output; it needs nothing but the contract."""
    program = build("""
      printf("It says ");
      printf("%s, no newline", input.data);
      return tartlet_ok("[%s, %d]", input.data, 2);
    """)
    run = host.start(program, {"a": 1})
    text = "".join(event.text for event in run if isinstance(event, Output))

    assert run.result() == [{"a": 1}, 2]
    assert text == 'It says {"a": 1}, no newline'
    assert contract().world_of(program) == "inferlet"
    assert len(program) < 40_000


def test_a_folder_is_a_program(tmp_path: Path, host: sync.Host) -> None:
    """All its .c files, wherever they lie in it, see its headers and the SDK's."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "twice.h").write_text("int twice(int number);\n")
    (tmp_path / "parts" / "twice.c").write_text('#include "../twice.h"\nint twice(int number) { return 2 * number; }\n')
    (tmp_path / "main.c").write_text(
        f'{INCLUDES}#include "twice.h"\n'
        'tartlet_result run(tartlet_string input) { return tartlet_ok("%d", twice(atoi(input.data))); }\n'
    )
    build_component(tmp_path, tmp_path / "out.wasm")

    assert host.run((tmp_path / "out.wasm").read_bytes(), 21) == 42


def test_a_controller_says_that_it_is_one(tmp_path: Path) -> None:
    """It defines TARTLET_CONTROLLER, and has `start` and `step`."""
    (tmp_path / "main.c").write_text("""
      #define TARTLET_CONTROLLER
      #include "tartlet.h"
      tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt) {
        return (tartlet_result_start_answer_string){.ok = {.prompt = {config.length > 4, prompt}}};
      }
      tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes) {
        return (tartlet_result_list_decision_string){
            .ok = {tartlet_scratch(outcomes.length * sizeof(tartlet_decision)), outcomes.length}};
      }
    """)
    build_component(tmp_path, tmp_path / "out.wasm")

    assert contract().world_of((tmp_path / "out.wasm").read_bytes()) == "controller"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('tartlet_fail("%d is too many", 7);', "main.c:5: 7 is too many"),
        ("tartlet_assert(input.length == 7); return tartlet_ok(\"1\");", "main.c:5: input.length == 7 does not hold"),
        ("assert(input.length == 7); return tartlet_ok(\"1\");", "main.c:5: input.length == 7 does not hold"),
        (
            "tartlet_context_truncate(tartlet_new_context(tartlet_default_model(NULL), NULL), 5, NULL);"
            'return tartlet_ok("1");',
            "tartlet_context_truncate: invalid-argument: cannot truncate to 5 tokens: the context has 0",
        ),
        ("return tartlet_ok(\"%zu\", (size_t)tartlet_new(1u << 31));", "no memory is left for 2147483648 bytes"),
    ],
)  # fmt: skip
def test_a_program_that_ends_itself_is_told_with_its_own_words(
    build: Build, host: sync.Host, body: str, says: str
) -> None:
    """The reason comes first, with its place, and then where the program was."""
    with pytest.raises(GuestTrapError) as caught:
        host.run(build(body), None)

    assert says in caught.value.message.splitlines()[0]
    assert "at main!run" in caught.value.message


def test_a_trap_names_the_functions(build: Build, host: sync.Host) -> None:
    """Where the program was is told by the names in its source; an error that it logged long before is none of it."""
    program = build("""
      tartlet_log(TARTLET_LEVEL_ERROR, "%s", "long ago");
      tartlet_runs_info();
      *(volatile int *)0xfffffff0 = 1;
      return tartlet_ok("1");
    """)
    run = host.start(program, None)
    with pytest.raises(GuestTrapError, match="outside its memory") as caught:
        run.result()

    assert "at main!run" in caught.value.message
    assert "long ago" not in caught.value.message
    assert [event.message for event in run if isinstance(event, Log)] == ["long ago"]


def test_what_the_compiler_says_is_the_error(build: Build) -> None:
    """With the file's name and the line."""
    with pytest.raises(BuildError, match=r"main\.c:5:.*\n?.*error: use of undeclared identifier 'nothing'"):
        build("return nothing;")


def test_what_programs_do_not_have_is_told(build: Build) -> None:
    """A call of the C library that needs an operating system is refused with what to do instead."""
    with pytest.raises(BuildError, match="of the system that programs do not have") as caught:
        build("exit(1);")
    assert "End a run by returning" in caught.value.hint


def test_a_program_without_run_is_refused(tmp_path: Path) -> None:
    """The linker says what is missing, and the hint what it looks like."""
    (tmp_path / "main.c").write_text('#include "tartlet.h"\n')

    with pytest.raises(BuildError, match="undefined symbol: run") as caught:
        build_component(tmp_path, tmp_path / "out.wasm")
    assert "tartlet_result run(" in caught.value.hint
    assert not (tmp_path / "out.wasm").exists()


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    """A folder without a main.c, and a file of another kind."""
    (tmp_path / "other.txt").touch()

    for path in (tmp_path, tmp_path / "other.txt"):
        with pytest.raises(BuildError, match=r"neither a \.c file nor a folder with a main\.c"):
            build_component(path, tmp_path / "out.wasm")


def test_without_the_compiler_it_is_told_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the Python package nor a program on the PATH."""
    assert [tool.version is not None for tool in C.tools()] == [True, True]
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (tmp_path / "main.c").touch()

    assert C.tools()[0].version is None
    with pytest.raises(BuildError, match="Zig is not installed") as caught:
        build_component(tmp_path, tmp_path / "out.wasm")
    assert "pip install 'tartlet[c]'" in caught.value.hint
