"""What makes the contract comfortable in C. The conformance suite has the contract itself."""

from __future__ import annotations

from typing import Any

import pytest

from tartlet.errors import GuestError

pytestmark = pytest.mark.slow

CONTEXT = "tartlet_context context = tartlet_new_context(tartlet_default_model(NULL), NULL);"


def test_a_failure_is_told_once_for_several_calls(c_host: Any) -> None:
    """Calls after a refused one do nothing; the failure is the first one's."""
    result = c_host.run(f"""
      {CONTEXT}
      tartlet_failure failure = {{0}};
      tartlet_fill(context, "one", &failure);
      tartlet_context_truncate(context, 9, &failure);
      tartlet_fill(context, "two", &failure);
      tartlet_draft draft = tartlet_generate(context, tartlet_greedy(), tartlet_max_tokens(2), &failure);
      tartlet_result result = tartlet_ok("[\\"%s\\", %u, %zu]", tartlet_failure_text(&failure).data,
                                         tartlet_context_length(context), draft.tokens.length);
      tartlet_failure_clear(&failure);
      tartlet_fill(context, "three", &failure);
      return tartlet_context_length(context) == 8 && !failure.call ? result : tartlet_failed("no");
    """)

    assert result == [
        "tartlet_context_truncate: invalid-argument: cannot truncate to 9 tokens: the context has 3",
        3,
        0,
    ]


def test_an_error_is_for_people(c_host: Any) -> None:
    """What `tartlet_failed` says is the run's error, as it is."""
    with pytest.raises(GuestError) as caught:
        c_host.run('return tartlet_failed("no %s for %d", "cake", 3);')
    assert caught.value.message == "no cake for 3"


def test_chunks_come_one_after_the_other(c_host: Any) -> None:
    """Together they are the draft; after the last there is none, however often one asks."""
    stream = c_host.run(f"""
      {CONTEXT}
      tartlet_user(context, "A text that is streamed.", NULL);
      tartlet_generation generation = tartlet_stream(context, tartlet_greedy(), tartlet_max_tokens(99), NULL);
      tartlet_string text = {{0}};
      tartlet_chunk chunk;
      while (tartlet_stream_next(&generation, &chunk, NULL)) {{
        tartlet_append(&text, "%s", chunk.text.data);
        tartlet_chunk_free(&chunk);
      }}
      if (tartlet_stream_next(&generation, &chunk, NULL)) return tartlet_failed("more");
      return tartlet_ok_text(text);
    """)

    assert stream == "A text that is streamed."


def test_the_first_event_that_is_ready_is_found(c_host: Any) -> None:
    """By its place; no place if the time passes before."""
    places = c_host.run("""
      tartlet_event events[] = {tartlet_events_timer(3600000000000), tartlet_events_timer(1000000)};
      size_t first = tartlet_wait_any(events, 2, 60);
      size_t none = tartlet_wait_any(events, 1, 0.001);
      tartlet_sleep(0.001);
      return tartlet_ok("[%zu, %zu]", first, none);
    """)

    assert places == [1, 1]


def test_saved_contexts_and_variables_are_waited_for(c_host: Any) -> None:
    """Each in one call."""
    result = c_host.run(f"""
      {CONTEXT}
      tartlet_fill(context, "saved", NULL);
      tartlet_save(context, "of-c", (tartlet_save_options){{.overwrite = true}}, NULL);
      tartlet_context opened = tartlet_open_saved(tartlet_default_model(NULL), "of-c", NULL);
      tartlet_contexts_delete_saved(tartlet_text("of-c"), NULL);
      tartlet_store_set_variable(tartlet_text("v"), tartlet_text("set"), NULL);
      tartlet_variable variable = tartlet_wait_variable("v", 0, NULL);
      return tartlet_ok("[%u, \\"%s\\"]", tartlet_context_length(opened), variable.value.data);
    """)

    assert result == [5, "set"]


def test_random_numbers_come_from_the_seed(c_host: Any) -> None:
    """The same seed gives the same, another one others; fractions are from 0 to 1."""
    program = c_host.build("""
      uint64_t number = tartlet_random();
      double fraction = tartlet_random_fraction();
      return tartlet_ok("[\\"%llu\\", %d]", number, fraction >= 0 && fraction < 1);
    """)
    numbers = [c_host.host.run(program, None, seed=seed) for seed in (1, 1, 2)]

    assert numbers[0] == numbers[1] != numbers[2]
    assert all(is_in_range for _, is_in_range in numbers)


def test_a_program_that_frees_what_it_gets_does_not_grow(c_host: Any) -> None:
    """Ten thousand texts and errors of the host, freed, take no more memory than a hundred."""
    grown = c_host.run(f"""
      {CONTEXT}
      tartlet_fill(context, "A text of a few tokens.", NULL);
      size_t pages = 0;
      for (int i = 0; i < 3000; i++) {{
        if (i == 100) pages = __builtin_wasm_memory_size(0);
        tartlet_list_token tokens = tartlet_context_tokens(context);
        tartlet_list_token_free(&tokens);
        tartlet_failure failure = {{0}};
        tartlet_context_truncate(context, 100, &failure);
        tartlet_failure_clear(&failure);
        tartlet_list_limit limits = tartlet_runs_limits();
        tartlet_list_limit_free(&limits);
      }}
      return tartlet_ok("%zu", __builtin_wasm_memory_size(0) - pages);
    """)

    assert grown == 0
