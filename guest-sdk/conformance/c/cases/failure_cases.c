/* Runs that end without a result: the host says how. */

#include "transcript.h"

static void error(void) { tartlet_fail("the reason is seven é"); }

static void uncaught(void) { tartlet_context_truncate(filled("abc"), 7, NULL); }

/* The array keeps it from being made a loop. */
static uint64_t down(uint64_t number) {
  volatile uint64_t frame[16] = {number};
  return down(frame[0] + 1) + frame[0];
}

static void recursion(void) { SAY("never", num(down(0))); }

static void memory(void) {
  for (;;) memset(tartlet_new(1 << 20), 1, 1 << 20);
}

static void cpu(void) {
  for (volatile int forever = 1; forever;) {
  }
}

static void wall_time(void) { tartlet_wait_ready(tartlet_events_timer(HOUR)); }

static void tokens(void) {
  tartlet_generate(filled("endless"), tartlet_greedy(), (tartlet_stop_conditions){.ignore_eos = true}, NULL);
}

static void kv_pages(void) {
  tartlet_context contexts[3];
  for (int i = 0; i < 3; i++) contexts[i] = filled(repeated("0123456789abcdef", 4).data);
  for (int i = 0; i < 3; i++) tartlet_flush(contexts[i], NULL);
}

static void handles(void) {
  for (;;) tartlet_events_timer(HOUR);
}

static void output(void) {
  for (int i = 0; i < 100; i++) tartlet_log_print(repeated("x", 100));
}

static void host_calls(void) {
  for (;;) tartlet_events_poll((tartlet_list_event){0}, (tartlet_option_u64){true, 0});
}

static void unknown_event(void) {
  tartlet_event unknown = UINT32_MAX;
  polls(&unknown, 1, (tartlet_option_u64){true, 0}, NULL, 0);
}

static void event_twice(void) {
  tartlet_event event = tartlet_events_timer(0);
  tartlet_events_drop_event(event);
  tartlet_events_drop_event(event);
}

static void unknown_mask(void) {
  tartlet_mask_union(tartlet_mask_tokens(model(), TOKENS(7), NULL), IDS(UINT32_MAX), &f);
}

static void poll_of_nothing(void) { tartlet_events_poll((tartlet_list_event){0}, FOR_EVER); }

static void leaked(void) {
  for (int i = 0; i < 300; i++) {
    tartlet_context_fork(filled(tartlet_format("context %d", i).data), NULL);
    tartlet_events_timer(HOUR);
  }
  SAY("leaked", num(600));
}

static void given_back(void) {
  tartlet_context parent = filled("x");
  for (int i = 0; i < 5000; i++) tartlet_context_drop(tartlet_context_fork(parent, NULL)); /* more than a run may hold */
  SAY("forks", num(5000));
}

const test_case failure_cases[] = {
    {"failures.error", error},
    {"failures.uncaught-refusal", uncaught},
    {"failures.recursion", recursion},
    {"failures.memory", memory},
    {"failures.cpu", cpu},
    {"failures.wall-time", wall_time},
    {"failures.tokens", tokens},
    {"failures.kv-pages", kv_pages},
    {"failures.handles", handles},
    {"failures.output", output},
    {"failures.host-calls", host_calls},
    {"failures.unknown-event", unknown_event},
    {"failures.event-twice", event_twice},
    {"failures.unknown-mask", unknown_mask},
    {"failures.poll-of-nothing", poll_of_nothing},
    {"handles.leaked", leaked},
    {"handles.given-back", given_back},
    {0},
};
