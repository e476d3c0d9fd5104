"""Programs in C that break the rules of the component model, or ask for too much at once: each ends by name, alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tartlet
from tartlet import Limits, sync
from tartlet.languages.c import build_component
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.slow

CONTEXT = "tartlet_context context = tartlet_new_context(tartlet_default_model(NULL), NULL);"
FILLED = f'{CONTEXT} tartlet_fill(context, "x", NULL);'
PROGRAMS = {
    "list beyond the memory": (
        f"{CONTEXT} tartlet_context_fill_tokens(context, (tartlet_list_token){{NULL, 1u << 30}}, NULL);",
        "trap",
        "out of bounds of memory",
    ),
    "list that is not aligned": (
        f"{CONTEXT} tartlet_context_fill_tokens(context, (tartlet_list_token){{(tartlet_token *)1, 2}}, NULL);",
        "trap",
        "not aligned",
    ),
    "enum that is none": (
        'tartlet_log_log((tartlet_level)99, tartlet_text("x"));',
        "trap",
        "discriminant 99 out of range",
    ),
    "handle of another kind": (
        "tartlet_model model = tartlet_default_model(NULL);tartlet_context_length((tartlet_context){model.handle});",
        "invalid_handle",
        "used with the wrong type",
    ),
    "handle that was dropped": (
        f"{CONTEXT} tartlet_context_drop(context); tartlet_context_length(context);",
        "invalid_handle",
        "unknown handle",
    ),
    "handle that is dropped twice": (
        f"{CONTEXT} tartlet_context_drop(context); tartlet_context_drop(context);",
        "invalid_handle",
        "unknown handle",
    ),
    "result outside the memory": (
        "return (tartlet_result){.ok = {(char *)0x7fffff00, 100}};",
        "trap",
        "out of bounds of memory",
    ),
    "result that is not UTF-8": ('return (tartlet_result){.ok = {"\\xff\\xfe", 2}};', "trap", "utf-8"),
    "poll of four million events": (
        "tartlet_event *events = calloc(1u << 22, sizeof *events);"
        "tartlet_events_poll((tartlet_list_event){events, 1u << 22}, (tartlet_option_u64){0});",
        "trap",
        "too much data",
    ),
    "one text two thousand times": (
        f"{FILLED} tartlet_string large = {{calloc(1, 1 << 20), 1 << 20}}, strings[2048];"
        "for (int i = 0; i < 2048; i++) strings[i] = large;"
        "tartlet_stop_conditions stop = {.strings = {strings, 2048}};"
        "tartlet_generate(context, tartlet_greedy(), stop, NULL);",
        "trap",
        "too much data",
    ),
    "sixty thousand questions": (
        f"{FILLED} tartlet_request *asked = calloc(60000, sizeof *asked);"
        "tartlet_forward_options options = {.requests = {asked, 60000}};"
        "tartlet_forward_forward(context, (tartlet_list_token){0}, &options, NULL);",
        "trap",
        "60,000 requests; a pass takes 512",
    ),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    """Nothing of what a program had may be left in it."""
    engine = FakeEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def host(engine: FakeEngine) -> Iterator[sync.Host]:
    """One host for all: each must leave it as it was."""
    with sync.Host(engine=engine) as host:
        yield host


@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_program(host: sync.Host, engine: FakeEngine, tmp_path: Path, name: str) -> None:
    """It ends with its own error, and everything that it held is freed."""
    body, code, message = PROGRAMS[name]
    (tmp_path / "main.c").write_text(
        f'#include <stdlib.h>\n#include "tartlet.h"\n'
        f'tartlet_result run(tartlet_string input) {{ (void)input; {body} return tartlet_ok("1"); }}\n'
    )
    build_component(tmp_path, tmp_path / "out.wasm")

    with pytest.raises(tartlet.TartletError) as caught:
        host.run((tmp_path / "out.wasm").read_bytes(), None, limits=Limits(max_memory_bytes=64 << 20))

    assert caught.value.code == code, caught.value
    assert message in caught.value.message
    engine.check_integrity()
    assert engine.stats().contexts == 0
