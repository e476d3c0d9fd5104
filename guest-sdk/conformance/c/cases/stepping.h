#ifndef STEPPING_H
#define STEPPING_H

#include "transcript.h"

/* Steps, and what they have come to so far. */
typedef struct {
  tartlet_context context;
  tartlet_steps handle;
  tartlet_string text;
  tartlet_list_token tokens;
  bool has_finished;
  tartlet_finish_reason reason;
} walk;

walk begin_steps(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                 tartlet_stepping_options options);
/* Answers, waits, and keeps count; a refusal is in `f`. */
tartlet_stepping_outcome step_with(walk *steps, tartlet_answer answer);
tartlet_stepping_outcome step(walk *steps);
/* Drops tokens from the end, then appends others, without sampling. */
tartlet_stepping_outcome replace(walk *steps, uint32_t backtrack, tartlet_list_token tokens);
tartlet_stepping_outcome force(walk *steps, const char *text);
walk fork_steps(const walk *steps, tartlet_option_u64 seed);
void stop_steps(walk *steps);

#endif
