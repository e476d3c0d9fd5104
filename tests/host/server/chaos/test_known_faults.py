"""Public reports of how servers of models have failed, and the tests that show that this one ends as it should.

The numbers are those of the project's own list of reports; those that are missing are not about a server like this.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[3]
CHAOS = "host/server/chaos/"
MODELS = f"{CHAOS}test_models.py::test_what_servers_of_models_have_died_of"
VANISH = f"{CHAOS}test_clients.py::test_clients_that_vanish_at_every_state"
ENGINE_KILLED = f"{CHAOS}test_kills.py::test_the_engine_with_fifty_live_runs"

FAULTS = {
    "B1 a malformed grammar ends the engine": [
        MODELS,
        "engine/constraints/test_operations.py::test_a_hostile_grammar_costs_its_neighbour_nothing",
    ],
    "B2 an invalid regex, grammar or schema ends the server": [
        MODELS,
        "engine/constraints/test_operations.py::test_a_hostile_text_is_an_error_or_works",
        "e2e/test_openai.py::test_schemas_with_errors_are_refused",
    ],
    "B4 ids outside the vocabulary, in prompts and biases": [
        MODELS,
        "engine/test_validation.py::test_ids_outside_the_vocabulary",
        "engine/constraints/test_masks.py::test_bits_outside_the_vocabulary_are_refused",
    ],
    "B5 a request that is larger than the KV pool waits for ever, and all others with it": [
        MODELS,
        "engine/test_commands.py::test_what_can_never_fit_is_refused_at_once",
        "engine/test_preemption_progress.py::test_every_demand_ends_while_others_keep_coming",
    ],
    "B6 everybody waits, and nobody goes on": [
        "engine/test_watchdog.py::test_who_waits_for_what_is_told_once",
        "host/server/front/processes/test_engine_watch.py::test_progress_is_an_answer_of_the_engine_s_thread",
    ],
    "B7 a client goes, and its generation does not": [VANISH, MODELS],
    "B8 that a client has gone is noticed after its prompt": [MODELS],
    "B10 of n choices not all are ended": [VANISH, MODELS],
    "B12 a session loses its context with its connection": [
        VANISH,
        "host/server/front/test_running.py::test_a_session",
    ],
    "B13 another process holds pages for a client that has gone": [
        f"{CHAOS}test_kills.py::test_a_worker_with_fifty_live_runs",
        "host/server/engine/test_session.py::test_prefixes_go_with_who_has_published_them",
    ],
    "B14 healthy, though the engine is dead": [ENGINE_KILLED, f"{CHAOS}test_standstill.py::test_the_engine"],
    "B15 not healthy, because the engine is busy; probes pile up": [MODELS],
    "B17 the engine is dead, and streams stay open": [ENGINE_KILLED],
    "B18 what a killed server has left is in the way of the next": [
        f"{CHAOS}test_kills.py::test_the_front_with_fifty_live_runs"
    ],
    "B19 a stop string over several tokens is shown, or not found": [
        MODELS,
        "engine/test_stop.py::test_cuts_do_not_matter",
        "engine/test_stop.py::test_a_stop_string_split_over_tokens",
    ],
    "B20 characters of several tokens come broken": [
        MODELS,
        "engine/test_detokenizer.py::test_no_character_is_ever_split",
    ],
    "B22 a full pool shows one request's text to another": [
        "engine/test_canary.py::test_canaries_of_two_tenants",
        "engine/test_canary.py::test_canaries_in_every_weight_format",
    ],
    "B23 each request leaves some memory behind": [
        f"{CHAOS}test_soak.py::test_ten_thousand_runs",
        "host/test_many_runs.py::test_nothing_is_left",
    ],
    "B24 a program that never waits keeps timers from firing": [
        "host/test_hostile_guests.py::test_hostile_component",
        "host/test_hostile_guests.py::test_the_neighbours_tokens_come_while_one_spins",
    ],
    "B25 a host call blocks where no limit reaches it": [
        "host/test_hostile_guests.py::test_hostile_python",
        "host/test_hostile_guests.py::test_commands_that_come_faster_than_the_engine_does_them",
    ],
    "B28 a program is compiled for each run; sandboxes wander between threads": [
        "host/wasm/test_compiler.py::test_compiled_once",
        "host/wasm/test_executor.py::test_posted_calls_run_in_order_on_the_executors_thread",
    ],
    "B29 a run that is silent for long loses its connection": [
        "host/server/front/test_sse.py::test_silence_is_broken",
        f"{CHAOS}test_clients.py::test_silent_runs_keep_their_connections",
    ],
}


@pytest.mark.parametrize("test", sorted({test for tests in FAULTS.values() for test in tests}))
def test_the_list_is_true(test: str) -> None:
    """Each test that is named is there."""
    path, name = test.split("::")
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))

    assert name in [getattr(node, "name", "") for node in tree.body]
