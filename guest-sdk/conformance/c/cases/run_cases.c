/* The run itself. */

#include "transcript.h"

static void info(void) {
  tartlet_run_info this = tartlet_runs_info();
  SAY("an id", flag(this.id.length > 0), flag(this.inferlet.length > 0));
  SAY("tenant", str(this.tenant));
  SAY("seed", num(this.seed));
}

static uint64_t used(tartlet_list_limit limits, const char *name) {
  for (size_t i = 0; i < limits.length; i++)
    if (tartlet_is(limits.data[i].name, name)) return limits.data[i].used;
  return MOST;
}

static void limits(void) {
  tartlet_list_limit all = tartlet_runs_limits();
  for (size_t i = 0; i < all.length; i++)
    SAY(all.data[i].name.data, option_num(all.data[i].allowed.is_some, all.data[i].allowed.value));
  SAY("used", num(used(all, "max_tokens")), num(used(all, "max_controllers")));
}

const test_case run_cases[] = {{"runs.info", info}, {"runs.limits", limits}, {0}};
