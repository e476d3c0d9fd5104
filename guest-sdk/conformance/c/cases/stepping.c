#include "stepping.h"

walk begin_steps(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                 tartlet_stepping_options options) {
  return (walk){.context = context, .handle = tartlet_stepping_start(context, &sampling, &stop, &options, NULL)};
}

tartlet_stepping_outcome step_with(walk *steps, tartlet_answer answer) {
  tartlet_stepping_outcome outcome = tartlet_steps_next(steps->handle, &answer, &f);
  tartlet_list_token *tokens = &steps->tokens;
  tokens->length -= outcome.backtrack < tokens->length ? outcome.backtrack : tokens->length;
  tokens->data = realloc(tokens->data, (tokens->length + outcome.tokens.length + 1) * sizeof(tartlet_token));
  for (size_t i = 0; i < outcome.tokens.length; i++) tokens->data[tokens->length++] = outcome.tokens.data[i];
  take_back(&steps->text, outcome.text_backtrack);
  tartlet_append(&steps->text, "%.*s", (int)outcome.text.length, outcome.text.data);
  if (outcome.finish.is_some) steps->has_finished = true, steps->reason = outcome.finish.value.reason;
  return outcome;
}

tartlet_stepping_outcome step(walk *steps) { return step_with(steps, tartlet_sample()); }

tartlet_stepping_outcome replace(walk *steps, uint32_t backtrack, tartlet_list_token tokens) {
  tartlet_stepping_splice splice = {.backtrack = backtrack, .tokens = tokens};
  return step_with(steps, (tartlet_answer){.splices = {&splice, backtrack || tokens.length}});
}

tartlet_stepping_outcome force(walk *steps, const char *text) {
  return replace(steps, 0, tartlet_model_tokenize(model(), T(text), NULL));
}

walk fork_steps(const walk *steps, tartlet_option_u64 seed) {
  tartlet_tuple_context_steps made = tartlet_steps_fork(steps->handle, seed, NULL);
  walk child = *steps;
  child.context = made.f0, child.handle = made.f1;
  child.text = tartlet_format("%.*s", (int)steps->text.length, steps->text.data);
  child.tokens.data = tartlet_new((steps->tokens.length + 1) * sizeof(tartlet_token));
  memcpy(child.tokens.data, steps->tokens.data, steps->tokens.length * sizeof(tartlet_token));
  return child;
}

void stop_steps(walk *steps) {
  tartlet_steps_stop(steps->handle);
  tartlet_steps_drop(steps->handle);
}
