/* Variables, and generations that race for them. */

#include "transcript.h"

static void say_variable(const char *label, const char *name) {
  tartlet_option_variable found = tartlet_store_get_variable(T(name));
  if (found.is_some)
    SAY(label, str(found.value.value), num(found.value.version));
  else
    SAY(label, none());
}

static tartlet_string set(const char *name, tartlet_string value) {
  return num(tartlet_store_set_variable(T(name), value, &f));
}

static tartlet_string append(const char *name, tartlet_string value) {
  return num(tartlet_store_append_variable(T(name), value, &f));
}

static void get(void) {
  say_variable("not there", "x");
  set("x", T(""));
  say_variable("empty", "x");
  say_variable("no name", "");
}

static void set_variable(void) {
  ATTEMPT_VALUE("first", set("é", T("one")));
  ATTEMPT_VALUE("again", set("é", T("two 😀\n")));
  say_variable("now", "é");
  ATTEMPT_VALUE("no name", set("", T("x")));
  ATTEMPT_VALUE("longest name", set(repeated("n", 256).data, T("x")));
  ATTEMPT_VALUE("too long a name", set(repeated("é", 129).data, T("x")));
  ATTEMPT_VALUE("too large", set("x", repeated("x", 1 << 20)));
  say_variable("not written", "x");
}

static void append_variable(void) {
  ATTEMPT_VALUE("new", append("x", T("one")));
  ATTEMPT_VALUE("more", append("x", T(" two")));
  ATTEMPT_VALUE("nothing", append("x", T("")));
  say_variable("now", "x");
  ATTEMPT_VALUE("too large", append("x", repeated("x", 1 << 20)));
}

static tartlet_swap swap(const char *name, const char *value, uint64_t version) {
  return tartlet_store_compare_and_swap_variable(T(name), T(value), version, &f);
}

static void say_swap(const char *label, tartlet_swap swap) {
  SAY(label, flag(swap.written), str(swap.now.value), num(swap.now.version));
}

static void compare_and_swap(void) {
  say_swap("not there yet", swap("x", "a", 0));
  say_swap("there by now", swap("x", "b", 0));
  say_swap("next", swap("x", "c", 1));
  say_swap("a version of 2^64 - 1", swap("x", "d", MOST));
  say_swap("a version of 2^53 + 1", swap("x", "e", 9007199254740993));
  say_swap("not there", swap("y", "a", 1));
  ATTEMPT("no name", swap("", "x", 0));
}

static void list_variables(void) {
  SAY("none", num(tartlet_store_list_variables().length));
  const char *names[] = {"b", "a", "c", "a"};
  for (int i = 0; i < 4; i++) set(names[i], T(names[i]));
  tartlet_list_variable_version all = tartlet_store_list_variables();
  for (size_t i = 0; i < all.length; i++) SAY("variable", str(all.data[i].name), num(all.data[i].version));
}

static void variable_above(void) {
  set("x", T("one"));
  tartlet_variable found = tartlet_wait_variable("x", 0, NULL);
  SAY("there already", str(found.value), num(found.version));
  tartlet_event events[] = {tartlet_store_variable_above(T("x"), 2, NULL), tartlet_events_timer(2000000)};
  if (tartlet_wait_any(events, 2, -1) == 1) set("x", T("two")), set("x", T("three"));
  tartlet_wait(events[0], NULL);
  say_variable("above two", "x");
  tartlet_event never = tartlet_store_variable_above(T("x"), MOST, NULL);
  SAY("above 2^64 - 1", tartlet_wait_any(&never, 1, 0.001) == 1 ? T("[]") : T("?"));
  tartlet_events_drop_event(never);
  ATTEMPT("no name", tartlet_wait_variable("", 0, &f));
}

static void many(void) {
  for (int i = 0; i < 1024; i++) set(tartlet_format("v%d", i).data, tartlet_format("%d", i));
  ATTEMPT_VALUE("one more", set("more", T("x")));
  SAY("how many", num(tartlet_store_list_variables().length));
  SAY("the last", str(tartlet_store_get_variable(T("v1023")).value.value));
}

static void race(void) {
  const char *names[] = {"short", "long"};
  tartlet_generation started[] = {start_generation(filled("short")), start_generation(filled("endless"))};
  tartlet_event ready[] = {tartlet_generation_ready(started[0]), tartlet_generation_ready(started[1])};
  size_t first = tartlet_wait_any(ready, 2, -1);
  for (size_t i = 0; i < 2; i++) {
    size_t each = i ? 1 - first : first;
    tartlet_string text = tartlet_finish_generation(started[each], NULL).text;
    tartlet_string value = tartlet_format("%s: %.5s", names[each], text.data);
    bool has_won = swap("winner", value.data, 0).written;
    if (!i) SAY("winner", str(tartlet_wait_variable("winner", 0, NULL).value));
    append("log", tartlet_format("%s %s;", names[each], has_won ? "won" : "lost"));
  }
  SAY("log", str(tartlet_store_get_variable(T("log")).value.value));
}

static void relay(void) {
  set("ball", T(""));
  for (uint64_t version = 0; version < 200; version++) {
    tartlet_wait_variable("ball", version, NULL);
    append("ball", T(version % 2 ? "o" : "x"));
  }
  tartlet_variable ball = tartlet_store_get_variable(T("ball")).value;
  SAY("ball", num(ball.version), flag(tartlet_is(ball.value, repeated("xo", 100).data)));
}

const test_case store_cases[] = {
    {"store.get-variable", get},
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
