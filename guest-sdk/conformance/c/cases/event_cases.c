/* Waiting: the contract's own calls, and loops over them. */

#include "transcript.h"

static const tartlet_option_u64 LOOK = {true, 0}, A_MILLISECOND = {true, 1000000};

static void poll(void) {
  tartlet_event first = tartlet_events_timer(0), second = tartlet_events_timer(0), late = tartlet_events_timer(HOUR);
  is_ready(first);
  is_ready(second);
  tartlet_event three[] = {second, late, first}, ordered[] = {second, first}, twice[] = {first, first};
  SAY("in the order given", flag(polls(three, 3, FOR_EVER, ordered, 2)));
  SAY("one twice", flag(polls(twice, 2, FOR_EVER, twice, 2)));
  SAY("still ready", flag(polls(&first, 1, LOOK, &first, 1)));
  tartlet_list_event one = {&late, 1}, none_at_all = {0};
  SAY("only a look", tartlet_events_poll(one, LOOK).length ? T("?") : T("[]"));
  SAY("the time passes", tartlet_events_poll(one, A_MILLISECOND).length ? T("?") : T("[]"));
  SAY("nothing, for a while", tartlet_events_poll(none_at_all, A_MILLISECOND).length ? T("?") : T("[]"));
  SAY("ready with a timeout of 2^64 - 1", flag(polls(&first, 1, (tartlet_option_u64){true, MOST}, &first, 1)));
}

static void timer(void) {
  tartlet_event soon = tartlet_events_timer(1000000), never = tartlet_events_timer(MOST);
  SAY("other ids", flag(soon != never));
  SAY("the soon one", flag(polls((tartlet_event[]){never, soon}, 2, FOR_EVER, &soon, 1)));
  ATTEMPT("outcome", tartlet_events_outcome(soon, &f));
}

static void outcome(void) {
  tartlet_event ready = tartlet_events_timer(0);
  is_ready(ready);
  ATTEMPT("ready", tartlet_events_outcome(ready, &f));
  tartlet_context context = filled("x");
  for (int i = 0; i < 2; i++) {
    tartlet_event saved = tartlet_context_save(context, T("taken"), &(tartlet_save_options){0}, NULL);
    is_ready(saved);
    ATTEMPT(i ? "failed" : "ok", tartlet_events_outcome(saved, &f));
  }
}

static void drop_event(void) {
  for (int i = 0; i < 5000; i++) tartlet_events_drop_event(tartlet_events_timer(HOUR)); /* more than a run may hold */
  SAY("dropped", num(5000));
}

static void gather(void) {
  tartlet_generation started[100];
  tartlet_string texts[100];
  for (int i = 0; i < 100; i++) started[i] = start_generation(filled(tartlet_format("number %d", i).data));
  for (int i = 0; i < 100; i++) texts[i] = str(tartlet_finish_generation(started[i], NULL).text);
  SAY("texts", list(texts, 100));
}

static void many_timers(void) {
  tartlet_event timers[600];
  uint64_t sum = 0, left = 600, numbers[600];
  for (uint64_t i = 0; i < 600; i++) timers[i] = tartlet_events_timer(1000000 * (i % 3)), numbers[i] = i;
  while (left) {
    size_t at = tartlet_wait_any(timers, left, -1);
    tartlet_events_outcome(timers[at], NULL);
    sum += numbers[at];
    left--;
    timers[at] = timers[left], numbers[at] = numbers[left];
  }
  SAY("done", num(600), num(sum));
}

static void first_of_two(void) {
  tartlet_context lengthy = filled("endless");
  tartlet_generation both[] = {start_generation(lengthy), start_generation(filled("short"))};
  tartlet_event events[] = {tartlet_generation_ready(both[0]), tartlet_generation_ready(both[1])};
  size_t first = tartlet_wait_any(events, 2, -1);
  SAY("which", list((tartlet_string[]){num(first)}, 1));
  SAY("text", str(tartlet_finish_generation(both[first], NULL).text));
  tartlet_generation_drop(both[0]);
  ATTEMPT("the other's context is free", tartlet_context_truncate(lengthy, 3, &f));
}

static void timeout(void) {
  tartlet_context context = filled("endless");
  tartlet_generation generation = start_generation(context);
  tartlet_event ready = tartlet_generation_ready(generation);
  if (tartlet_wait_any(&ready, 1, 0.03) == 1) SAY("timed out", flag(true));
  tartlet_generation_drop(generation);
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &f));
  SAY("tokens", nums(tartlet_context_tokens(context)));
}

static void timeout_of_nothing(void) {
  tartlet_event never = tartlet_store_variable_above(T("never"), 0, NULL);
  if (tartlet_wait_any(&never, 1, 0.02) == 1) SAY("timed out", flag(true));
  if (tartlet_wait_any(&never, 1, 0) == 1) SAY("at once", flag(true));
}

static void error_of_one(void) {
  tartlet_context bad = empty();
  tartlet_user(bad, "fail", NULL);
  tartlet_generation both[] = {start_generation(filled("good")), start_generation(bad)};
  ATTEMPT("the bad one", tartlet_finish_generation(both[1], &f));
  SAY("the good one", str(tartlet_finish_generation(both[0], NULL).text));
}

static void deadlock(void) {
  ATTEMPT("nobody is left", tartlet_wait_variable("never", 0, &f));
  tartlet_event events[] = {tartlet_store_variable_above(T("this"), 0, NULL),
                            tartlet_store_variable_above(T("that"), 0, NULL)};
  polls(events, 2, FOR_EVER, events, 2);
  ATTEMPT("the first", tartlet_events_outcome(events[0], &f));
  ATTEMPT("the second", tartlet_events_outcome(events[1], &f));
  SAY("goes on", num(tartlet_store_set_variable(T("this"), T("x"), NULL)));
}

static void cancelled_early(void) {
  tartlet_generation generation = start_generation(filled("endless"));
  tartlet_generation_cancel(generation);
  tartlet_draft draft = tartlet_finish_generation(generation, NULL);
  SAY("draft", cstr(finish_name(draft.finish.reason)), flag(draft.tokens.length < 1500));
}

static void dropped(void) {
  tartlet_context context = filled("endless"), contexts[200];
  tartlet_generation generation = start_stream(context);
  tartlet_chunk chunk;
  tartlet_stream_next(&generation, &chunk, NULL);
  tartlet_generation_drop(generation);
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &f));
  tartlet_event flushed[200];
  for (int i = 0; i < 200; i++) contexts[i] = tartlet_context_fork(context, NULL);
  for (int i = 0; i < 200; i++) flushed[i] = tartlet_context_flush(contexts[i], NULL);
  for (int i = 0; i < 200; i++) tartlet_wait(flushed[i], NULL);
  SAY("forks", num(200));
}

const test_case event_cases[] = {
    {"events.poll", poll},
    {"events.timer", timer},
    {"events.outcome", outcome},
    {"events.drop-event", drop_event},
    {"waiting.gather", gather},
    {"waiting.many-timers", many_timers},
    {"waiting.first-of-two", first_of_two},
    {"waiting.timeout", timeout},
    {"waiting.timeout-of-nothing", timeout_of_nothing},
    {"waiting.error-of-one", error_of_one},
    {"waiting.deadlock", deadlock},
    {"waiting.cancelled-before-it-began", cancelled_early},
    {"waiting.dropped", dropped},
    {0},
};
