/* The conformance suite in C: runs the case that its input names, and returns the lines of its transcript. */

#include "transcript.h"

extern const test_case constraint_cases[], context_cases[], event_cases[], failure_cases[], forward_cases[],
    generation_cases[], mask_cases[], matcher_cases[], model_cases[], run_cases[], steered_cases[], stepping_cases[],
    store_cases[], text_cases[], tiny_cases[], tree_cases[];

static const test_case *const subjects[] = {
    constraint_cases, context_cases, event_cases,   failure_cases,  forward_cases, generation_cases,
    mask_cases,       matcher_cases, model_cases,   run_cases,      steered_cases, stepping_cases,
    store_cases,      text_cases,    tiny_cases,    tree_cases,
};

static int by_bytes(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }

static tartlet_result all_names(void) {
  const char *names[512];
  size_t number = 0;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    for (const test_case *each = subjects[i]; each->name; each++) names[number++] = each->name;
  qsort(names, number, sizeof *names, by_bytes);
  tartlet_string json = {0};
  for (size_t i = 0; i < number; i++) tartlet_append(&json, "%s\"%s\"", i ? ", " : "", names[i]);
  return tartlet_ok("[%s]", json.data);
}

tartlet_result run(tartlet_string input) {
  tartlet_string name = tartlet_json_text(input, "case", "");
  if (tartlet_is(name, "list")) return all_names();
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
    for (const test_case *each = subjects[i]; each->name; each++)
      if (tartlet_is(name, each->name)) {
        each->run();
        return transcript();
      }
  return tartlet_failed("there is no case %s", name.data);
}
