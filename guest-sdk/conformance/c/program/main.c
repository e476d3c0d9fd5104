/* The conformance suite in C: runs the case that its input names, and returns the lines of its transcript. */
#include <stdlib.h>
#include <string.h>

#include "transcript.h"

static const test_case *const subjects[] = {
    constraint_cases, context_cases, event_cases, failure_cases,  forward_cases, generation_cases, model_cases,
    run_cases,        steered_cases, stepping_cases, store_cases, text_cases,    tiny_cases,       tree_cases,
};
#define NUM_SUBJECTS (sizeof subjects / sizeof *subjects)

static int by_name(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static tartlet_result list(void) {
  const char *names[1000];
  size_t number = 0;
  for (size_t i = 0; i < NUM_SUBJECTS; i++)
    for (const test_case *each = subjects[i]; each->name; each++) names[number++] = each->name;
  qsort(names, number, sizeof *names, by_name);
  tartlet_string text = S("[");
  for (size_t i = 0; i < number; i++) text = tartlet_format("%s%s\"%s\"", text.data, i ? "," : "", names[i]);
  return tartlet_ok("%s]", text.data);
}

tartlet_result run(tartlet_string input) {
  tartlet_string name = tartlet_json_text(input, "case", "");
  if (tartlet_is(name, "list")) return list();
  for (size_t i = 0; i < NUM_SUBJECTS; i++)
    for (const test_case *each = subjects[i]; each->name; each++)
      if (tartlet_is(name, each->name)) {
        each->run();
        return (tartlet_result){.ok = transcript()};
      }
  return tartlet_failed("there is no case %s", name.data);
}
