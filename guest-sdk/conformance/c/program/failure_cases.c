/* Runs that end without a result: the host says how. */
#include <stdio.h>
#include <stdlib.h>

#include "transcript.h"

static void error(void) { tartlet_fail("the reason is seven é"); }

static void uncaught(void) { tartlet_context_truncate(filled("abc"), 7, NULL); }

static int down(volatile int *number) {
  volatile int below = *number + 1;
  return down(&below) + *number;
}

static void recursion(void) {
  volatile int zero = 0;
  SAY("never", whole(down(&zero)));
}

static void memory(void) {
  for (;;) *(volatile char *)tartlet_new(1 << 20) = 1;
}

static void cpu(void) {
  for (volatile int spins = 0;; spins = spins + 1) continue;
}

static void wall_time(void) { tartlet_wait_ready(tartlet_events_timer(FOREVER_NS)); }

static void tokens(void) {
  tartlet_stop_conditions stop = {.ignore_eos = true};
  tartlet_generate(filled("endless"), tartlet_greedy(), stop, NULL);
}

static void kv_pages(void) {
  tartlet_context contexts[3];
  for (int i = 0; i < 3; i++) contexts[i] = filled(repeated("0123456789abcdef", 4).data);
  for (int i = 0; i < 3; i++) tartlet_flush(contexts[i], NULL);
}

static void handles(void) {
  for (;;) tartlet_events_timer(FOREVER_NS);
}

static void output(void) {
  for (int i = 0; i < 100; i++) tartlet_log_print(repeated("x", 100));
}

static void host_calls(void) {
  for (;;) tartlet_events_poll((tartlet_list_event){0}, (tartlet_option_u64){true, 0});
}

static void unknown_event(void) {
  tartlet_event unknown = 4294967295;
  tartlet_events_poll((tartlet_list_event){&unknown, 1}, (tartlet_option_u64){true, 0});
}

static void event_twice(void) {
  tartlet_event event = tartlet_events_timer(0);
  tartlet_events_drop_event(event);
  tartlet_events_drop_event(event);
}

static void unknown_mask(void) {
  tartlet_mask mask = tartlet_mask_tokens(model_of_host(), TOKENS(7), NULL);
  tartlet_mask_union(mask, NUMBERS(4294967295), NULL);
}

static void poll_of_nothing(void) { polled((tartlet_list_event){0}); }

static void leaked(void) {
  for (int i = 0; i < 300; i++) {
    tartlet_context context = filled(tartlet_format("context %d", i).data);
    tartlet_context_fork(context, NULL);
    tartlet_events_timer(FOREVER_NS);
  }
  SAY("leaked", whole(600));
}

static void given_back(void) {
  tartlet_context parent = filled("x");
  for (int i = 0; i < 5000; i++) tartlet_context_drop(tartlet_context_fork(parent, NULL));
  SAY("forks", whole(5000));
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
