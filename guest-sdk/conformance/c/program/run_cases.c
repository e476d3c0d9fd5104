/* The run itself. */
#include "transcript.h"

static void info(void) {
  tartlet_run_info run = tartlet_runs_info();
  SAY("an id", yes(run.id.length > 0), yes(run.inferlet.length > 0));
  SAY("tenant", quoted(run.tenant));
  SAY("seed", whole(run.seed));
}

static void limits(void) {
  tartlet_list_limit limits = tartlet_runs_limits();
  uint64_t tokens = 1, controllers = 1;
  for (size_t i = 0; i < limits.length; i++) {
    const tartlet_limit *each = &limits.data[i];
    SAY(each->name.data, each->allowed.is_some ? whole(each->allowed.value) : none());
    if (tartlet_is(each->name, "max_tokens")) tokens = each->used;
    if (tartlet_is(each->name, "max_controllers")) controllers = each->used;
  }
  SAY("used", whole(tokens), whole(controllers));
}

const test_case run_cases[] = {{"runs.info", info}, {"runs.limits", limits}, {0}};
