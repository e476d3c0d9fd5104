"""The bindings of the whole contract, compiled and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tartlet import sync
from tartlet.contract import contract as contract_of_the_host
from tartlet.languages.c import build_component
from tartlet.testing import FakeEngine
from tartlet_bindings.c import files
from tartlet_bindings.model import Contract

FUNCTION = re.compile(r"^\w+ (tartlet_\w+)\([^;]*\);$", re.MULTILINE)
PROGRAMS = {
    "inferlet": 'tartlet_result run(tartlet_string input) {{ {calls} return tartlet_ok("%s", input.data); }}',
    "controller": """
      tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt) {{
        {calls} return (tartlet_result_start_answer_string){{0}};
      }}
      tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes) {{
        return (tartlet_result_list_decision_string){{0}};
      }}""",
}


def sections(header: str) -> dict[str, str]:
    """The parts of the header by the names of their interfaces."""
    _, *parts = re.split(r"^/\* ---- (.+?) -+.*$", header, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("world", ["inferlet", "controller"])
def test_a_program_that_uses_every_function_is_a_component(contract: Contract, world: str, tmp_path: Path) -> None:
    """It compiles, so all layouts are what they should be; the host takes it, so all imports are."""
    parts = sections(files.header(contract))
    names = [name for each in contract.world(world).imports for name in FUNCTION.findall(parts[each.name])]
    calls = f"static void *volatile all[] = {{{', '.join(names)}}}; (void)all[0];"
    define = "#define TARTLET_CONTROLLER\n" if world == "controller" else ""
    (tmp_path / "main.c").write_text(f'{define}#include "tartlet.h"\n{PROGRAMS[world].format(calls=calls)}\n')

    build_component(tmp_path, tmp_path / "out.wasm")

    component = (tmp_path / "out.wasm").read_bytes()
    theirs = contract_of_the_host()
    assert theirs.world_of(component) == world
    theirs.check_component(component, world)
    assert all(f"/{each.name}@".encode() in component for each in contract.world(world).imports if each.functions)
    if world == "inferlet":
        engine = FakeEngine()
        with sync.Host(engine=engine) as host:
            assert host.run(component, [1, "zwei"]) == [1, "zwei"]
        engine.close()


def test_what_only_runners_may_import_is_not_there(contract: Contract) -> None:
    """The interface `source` is not for programs."""
    assert "source" not in sections(files.header(contract))
    assert "source@" not in files.source(contract)


def test_every_item_has_its_comment(contract: Contract) -> None:
    """What wit/ says of a function is said before its declaration."""
    parts = sections(files.header(contract))
    for interface in contract.interfaces:
        for function in interface.functions:
            if interface.name in parts:
                assert function.docs.splitlines()[0] in parts[interface.name]
