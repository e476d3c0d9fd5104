"""Controllers in C."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartlet import sync
from tartlet.events import Log, Output
from tartlet.testing import FakeEngine

pytestmark = pytest.mark.slow

STEPS = 1500
CONTROLLER = """
#define TARTLET_CONTROLLER
#include <stdio.h>
#include "tartlet.h"

static unsigned calls;

tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt) {
  printf("config %s, prompt %zu", config.data, prompt.length);
  return (tartlet_result_start_answer_string){.ok = {.log_probabilities = {true, 20}}};
}

tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes) {
  tartlet_decision *decisions = tartlet_scratch(outcomes.length * sizeof *decisions);
  tartlet_scratch(1000);
  if (++calls % 500 == 0) tartlet_log(TARTLET_LEVEL_INFO, "%zu", __builtin_wasm_memory_size(0));
  return (tartlet_result_list_decision_string){.ok = {decisions, outcomes.length}};
}
"""


INFERLET = """
#include "tartlet.h"

tartlet_result run(tartlet_string input) {
  tartlet_context context = tartlet_new_context(tartlet_default_model(NULL), NULL);
  tartlet_fill(context, "Hi", NULL);
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_stop_conditions stop = {0};
  tartlet_generation_options options = {0};
  tartlet_controlled running =
      tartlet_controllers_control(context, tartlet_text("steady"), input, &greedy, &stop, &options, NULL);
  tartlet_controlled_next(running, NULL);
  return tartlet_ok("%u", tartlet_context_length(context));
}
"""


def test_a_controller_goes_on_and_on_in_the_same_memory(tmp_path: Path) -> None:
    """What a step is given, and its scratch memory, are freed; what it prints comes at the end of each call."""
    for name, text in (("steady", CONTROLLER), ("inferlet", INFERLET)):
        (tmp_path / f"{name}.c").write_text(text)
    engine = FakeEngine(lambda prompt: "x" * STEPS, context_len=4096, num_pages=1000)
    with sync.Host(engine=engine, programs={"steady": tmp_path / "steady.c"}) as host:
        run = host.start(tmp_path / "inferlet.c", {"a": 1})
        events = list(run)
        length = run.result()
    engine.close()

    pages = [event.message for event in events if isinstance(event, Log)]
    assert length == 2 + STEPS + 1  # and the eos token
    assert len(pages) == STEPS // 500
    assert len(set(pages)) == 1
    assert next(event.text for event in events if isinstance(event, Output)) == 'config {"a": 1}, prompt 2'
