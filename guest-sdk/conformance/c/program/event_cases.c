/* Waiting: the contract's own calls, and what can be made of them. */
#include "transcript.h"

static shown numbers_of(tartlet_list_event events) {
  return tokens_of((tartlet_list_token){events.data, events.length});
}

static tartlet_list_event polled_for(tartlet_list_event events, uint64_t ns) {
  return tartlet_events_poll(events, (tartlet_option_u64){true, ns});
}

#define EVENTS(...) (tartlet_list_event){(tartlet_event[]){__VA_ARGS__}, sizeof((tartlet_event[]){__VA_ARGS__}) / 4}

static bool are(tartlet_list_event found, tartlet_event first, tartlet_event second) {
  return found.length == 2 && found.data[0] == first && found.data[1] == second;
}

static void poll(void) {
  tartlet_event first = tartlet_events_timer(0), second = tartlet_events_timer(0);
  tartlet_event late = tartlet_events_timer(FOREVER_NS);
  tartlet_wait_ready(first);
  tartlet_wait_ready(second);
  SAY("in the order given", yes(are(polled(EVENTS(second, late, first)), second, first)));
  SAY("one twice", yes(are(polled(EVENTS(first, first)), first, first)));
  tartlet_list_event still = polled_for(EVENTS(first), 0);
  SAY("still ready", yes(still.length == 1 && still.data[0] == first));
  SAY("only a look", numbers_of(polled_for(EVENTS(late), 0)));
  SAY("the time passes", numbers_of(polled_for(EVENTS(late), 1000000)));
  SAY("nothing, for a while", numbers_of(polled_for((tartlet_list_event){0}, 1000000)));
  tartlet_list_event most = polled_for(EVENTS(first), 18446744073709551615ull);
  SAY("ready with a timeout of 2^64 - 1", yes(most.length == 1 && most.data[0] == first));
}

static void timer(void) {
  tartlet_event soon = tartlet_events_timer(1000000), never = tartlet_events_timer(18446744073709551615ull);
  SAY("other ids", yes(soon != never));
  tartlet_list_event ready = polled(EVENTS(never, soon));
  SAY("the soon one", yes(ready.length == 1 && ready.data[0] == soon));
  ATTEMPT("outcome", tartlet_events_outcome(soon, &refused));
}

static void outcome(void) {
  tartlet_event ready = tartlet_events_timer(0);
  tartlet_wait_ready(ready);
  ATTEMPT("ready", tartlet_events_outcome(ready, &refused));
  tartlet_context context = filled("x");
  tartlet_save_options options = {0};
  for (int i = 0; i < 2; i++) {
    tartlet_event saved = tartlet_context_save(context, S("taken"), &options, NULL);
    tartlet_wait_ready(saved);
    ATTEMPT(i ? "failed" : "ok", tartlet_events_outcome(saved, &refused));
  }
}

static void drop_event(void) {
  for (int i = 0; i < 5000; i++) tartlet_events_drop_event(tartlet_events_timer(FOREVER_NS));
  SAY("dropped", whole(5000));
}

static void gather(void) {
  tartlet_generation running[100];
  shown texts[100];
  for (int i = 0; i < 100; i++) running[i] = started(filled(tartlet_format("number %d", i).data), false);
  for (int i = 0; i < 100; i++) texts[i] = quoted(tartlet_finish_generation(running[i], NULL).text);
  SAY("texts", list_of(texts, 100));
}

static void many_timers(void) {
  tartlet_event waiting[600];
  int numbers[600];
  size_t left = 600, done = 0, sum = 0;
  for (int i = 0; i < 600; i++) numbers[i] = i, waiting[i] = tartlet_events_timer(1000000 * (i % 3));
  while (left) {
    size_t ready = tartlet_wait_any(waiting, left, -1);
    tartlet_wait(waiting[ready], NULL);
    done++, sum += numbers[ready];
    left--;
    waiting[ready] = waiting[left], numbers[ready] = numbers[left];
  }
  SAY("done", whole(done), whole(sum));
}

static void first_of_two(void) {
  tartlet_context contexts[] = {filled("endless"), filled("short")};
  tartlet_generation running[] = {started(contexts[0], false), started(contexts[1], false)};
  tartlet_event events[] = {tartlet_generation_ready(running[0]), tartlet_generation_ready(running[1])};
  size_t first = tartlet_wait_any(events, 2, -1);
  SAY("which", LIST(whole(first)));
  SAY("text", quoted(tartlet_finish_generation(running[first], NULL).text));
  tartlet_generation_drop(running[!first]);
  ATTEMPT("the other's context is free", tartlet_context_truncate(contexts[!first], 3, &refused));
}

static void timeout(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = started(context, false);
  tartlet_event event = tartlet_generation_ready(running);
  if (tartlet_wait_any(&event, 1, 0.03) == 1) SAY("timed out", yes(true));
  tartlet_generation_drop(running);
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &refused));
  SAY("tokens", tokens_of(tartlet_context_tokens(context)));
}

static void timeout_of_nothing(void) {
  const char *labels[] = {"timed out", "at once"};
  const double times[] = {0.02, 0};
  for (int i = 0; i < 2; i++) {
    tartlet_event event = tartlet_store_variable_above(S("never"), 0, NULL);
    if (tartlet_wait_any(&event, 1, times[i]) == 1) SAY(labels[i], yes(true));
    tartlet_events_drop_event(event);
  }
}

static void error_of_one(void) {
  tartlet_context bad_context = empty();
  tartlet_user(bad_context, "fail", NULL);
  tartlet_generation good = started(filled("good"), false), bad = started(bad_context, false);
  ATTEMPT("the bad one", tartlet_finish_generation(bad, &refused));
  SAY("the good one", quoted(tartlet_finish_generation(good, NULL).text));
}

static void deadlock(void) {
  ATTEMPT("nobody is left", tartlet_wait_variable("never", 0, &refused));
  tartlet_event both[] = {tartlet_store_variable_above(S("this"), 0, NULL),
                          tartlet_store_variable_above(S("that"), 0, NULL)};
  polled((tartlet_list_event){both, 2});
  ATTEMPT("the first", tartlet_events_outcome(both[0], &refused));
  ATTEMPT("the second", tartlet_events_outcome(both[1], &refused));
  SAY("goes on", whole(tartlet_store_set_variable(S("this"), S("x"), NULL)));
}

static void cancelled_early(void) {
  tartlet_generation running = started(filled("endless"), false);
  tartlet_generation_cancel(running);
  tartlet_draft draft = tartlet_finish_generation(running, NULL);
  SAY("draft", quoted_text(reason_name(draft.finish.reason)), yes(draft.tokens.length < 1500));
}

static void dropped(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = started(context, true);
  tartlet_chunk chunk;
  tartlet_stream_next(&running, &chunk, NULL);
  tartlet_generation_drop(running);
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &refused));
  tartlet_event flushed[200];
  for (int i = 0; i < 200; i++) flushed[i] = tartlet_context_flush(tartlet_context_fork(context, NULL), NULL);
  for (int i = 0; i < 200; i++) tartlet_wait(flushed[i], NULL);
  SAY("forks", whole(200));
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
