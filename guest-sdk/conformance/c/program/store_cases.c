/* Variables, and forks that race for them. */
#include "transcript.h"

#define MOST 18446744073709551615ull

static void say_variable(const char *label, const char *name) {
  tartlet_option_variable found = tartlet_store_get_variable(S(name));
  if (found.is_some)
    SAY(label, quoted(found.value.value), whole(found.value.version));
  else
    SAY(label, none());
}

static uint64_t set(const char *name, const char *value) {
  return tartlet_store_set_variable(S(name), S(value), &refused);
}

static uint64_t append(const char *name, const char *value) {
  return tartlet_store_append_variable(S(name), S(value), &refused);
}

#define ATTEMPT_VERSION(label, expression)        \
  do {                                            \
    uint64_t version = (expression);              \
    attempted(label, refused.call ? NULL : whole(version)); \
  } while (0)

static void get_variable(void) {
  say_variable("not there", "x");
  set("x", "");
  say_variable("empty", "x");
  say_variable("no name", "");
}

static void set_variable(void) {
  ATTEMPT_VERSION("first", set("é", "one"));
  ATTEMPT_VERSION("again", set("é", "two 😀\n"));
  say_variable("now", "é");
  ATTEMPT_VERSION("no name", set("", "x"));
  ATTEMPT_VERSION("longest name", set(repeated("n", 256).data, "x"));
  ATTEMPT_VERSION("too long a name", set(repeated("é", 129).data, "x"));
  ATTEMPT_VERSION("too large", set("x", repeated("x", 1 << 20).data));
  say_variable("not written", "x");
}

static void append_variable(void) {
  ATTEMPT_VERSION("new", append("x", "one"));
  ATTEMPT_VERSION("more", append("x", " two"));
  ATTEMPT_VERSION("nothing", append("x", ""));
  say_variable("now", "x");
  ATTEMPT_VERSION("too large", append("x", repeated("x", 1 << 20).data));
}

static tartlet_swap swapped(const char *name, const char *value, uint64_t version) {
  return tartlet_store_compare_and_swap_variable(S(name), S(value), version, &refused);
}

static void say_swap(const char *label, tartlet_swap swap) {
  SAY(label, yes(swap.written), quoted(swap.now.value), whole(swap.now.version));
}

static void compare_and_swap(void) {
  say_swap("not there yet", swapped("x", "a", 0));
  say_swap("there by now", swapped("x", "b", 0));
  say_swap("next", swapped("x", "c", 1));
  say_swap("a version of 2^64 - 1", swapped("x", "d", MOST));
  say_swap("a version of 2^53 + 1", swapped("x", "e", 9007199254740993ull));
  say_swap("not there", swapped("y", "a", 1));
  ATTEMPT("no name", swapped("", "x", 0));
}

static void list_variables(void) {
  SAY("none", whole(tartlet_store_list_variables().length));
  set("b", "b"), set("a", "a"), set("c", "c"), set("a", "a");
  tartlet_list_variable_version all = tartlet_store_list_variables();
  for (size_t i = 0; i < all.length; i++) SAY("variable", quoted(all.data[i].name), whole(all.data[i].version));
}

static void say_found(const char *label, tartlet_variable found) {
  SAY(label, quoted(found.value), whole(found.version));
}

static void variable_above(void) {
  set("x", "one");
  say_found("there already", tartlet_wait_variable("x", 0, NULL));
  tartlet_event above_two = tartlet_store_variable_above(S("x"), 2, NULL);
  tartlet_sleep(0.002);
  set("x", "two");
  set("x", "three");
  tartlet_wait(above_two, NULL);
  tartlet_variable now = tartlet_store_get_variable(S("x")).value;
  say_found("above two", now);
  tartlet_event event = tartlet_store_variable_above(S("x"), MOST, NULL);
  tartlet_list_event ready =
      tartlet_events_poll((tartlet_list_event){&event, 1}, (tartlet_option_u64){true, 1000000});
  SAY("above 2^64 - 1", tokens_of((tartlet_list_token){ready.data, ready.length}));
  tartlet_events_drop_event(event);
  ATTEMPT("no name", tartlet_wait_variable("", 0, &refused));
}

static void many(void) {
  for (int i = 0; i < 1024; i++) set(tartlet_format("v%d", i).data, tartlet_format("%d", i).data);
  ATTEMPT_VERSION("one more", set("more", "x"));
  SAY("how many", whole(tartlet_store_list_variables().length));
  SAY("the last", quoted(tartlet_store_get_variable(S("v1023")).value.value));
}

static void answer(tartlet_generation running, const char *name) {
  tartlet_draft draft = tartlet_finish_generation(running, NULL);
  tartlet_swap swap = swapped("winner", tartlet_format("%s: %.5s", name, draft.text.data).data, 0);
  append("log", tartlet_format("%s %s;", name, swap.written ? "won" : "lost").data);
}

static void race(void) {
  tartlet_generation running[] = {started(filled("short"), false), started(filled("endless"), false)};
  tartlet_event events[] = {tartlet_generation_ready(running[0]), tartlet_generation_ready(running[1])};
  const char *names[] = {"short", "long"};
  size_t first = tartlet_wait_any(events, 2, -1);
  answer(running[first], names[first]);
  SAY("winner", quoted(tartlet_wait_variable("winner", 0, NULL).value));
  answer(running[!first], names[!first]);
  SAY("log", quoted(tartlet_store_get_variable(S("log")).value.value));
}

static void relay(void) {
  set("ball", "");
  tartlet_event waiting[2];
  uint64_t turns[] = {0, 1};
  for (int i = 0; i < 2; i++) waiting[i] = tartlet_store_variable_above(S("ball"), turns[i], NULL);
  for (size_t left = 2; left;) {
    size_t player = tartlet_wait_any(waiting, left, -1);
    tartlet_wait(waiting[player], NULL);
    append("ball", player ? "o" : "x");
    turns[player] += 2;
    if (turns[player] < 200)
      waiting[player] = tartlet_store_variable_above(S("ball"), turns[player], NULL);
    else
      waiting[player] = waiting[--left];
    if (left == 1 && player == 0) break;
  }
  tartlet_wait(waiting[0], NULL);
  append("ball", "o");
  tartlet_variable ball = tartlet_store_get_variable(S("ball")).value;
  SAY("ball", whole(ball.version), yes(tartlet_is(ball.value, repeated("xo", 100).data)));
}

const test_case store_cases[] = {
    {"store.get-variable", get_variable},
    {"store.set-variable", set_variable},
    {"store.append-variable", append_variable},
    {"store.compare-and-swap-variable", compare_and_swap},
    {"store.list-variables", list_variables},
    {"store.variable-above", variable_above},
    {"store.many", many},
    {"store.race", race},
    {"store.relay", relay},
    {0},
};
