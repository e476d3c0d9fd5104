#include "constrained.h"

tartlet_constraint json_schema(const char *schema) {
  return tartlet_compiled(tartlet_constraint_json_schema(model(), T(schema), &f), &f);
}

tartlet_constraint regex(const char *pattern) {
  return tartlet_compiled(tartlet_constraint_regex(model(), T(pattern), &f), &f);
}

tartlet_constraint lark(const char *grammar) {
  return tartlet_compiled(tartlet_constraint_lark(model(), T(grammar), &f), &f);
}

tartlet_constraint choices(const char *const *texts, size_t number) {
  tartlet_string *all = tartlet_new(number * sizeof *all);
  for (size_t i = 0; i < number; i++) all[i] = T(texts[i]);
  return tartlet_compiled(tartlet_constraint_choices(model(), (tartlet_list_string){all, number}, &f), &f);
}

tartlet_constraint tokens_only(tartlet_list_token tokens) {
  return tartlet_compiled(tartlet_constraint_tokens(model(), tokens, &f), &f);
}

static tartlet_list_u32 ids(const tartlet_constraint *parts, size_t number) {
  uint32_t *all = tartlet_new(number * sizeof *all);
  for (size_t i = 0; i < number; i++) all[i] = tartlet_constraint_id(parts[i]);
  return (tartlet_list_u32){all, number};
}

tartlet_constraint all_of(const tartlet_constraint *parts, size_t number) {
  return tartlet_compiled(tartlet_constraint_all_of(ids(parts, number), &f), &f);
}

tartlet_constraint any_of(const tartlet_constraint *parts, size_t number) {
  return tartlet_compiled(tartlet_constraint_any_of(ids(parts, number), &f), &f);
}

tartlet_draft constrained(tartlet_context context, tartlet_constraint constraint, uint32_t max_tokens) {
  tartlet_stop_conditions stop = tartlet_max_tokens(max_tokens);
  return constrained_with(context, constraint, (tartlet_option_u32){0}, stop, tartlet_greedy());
}

tartlet_draft constrained_with(tartlet_context context, tartlet_constraint constraint, tartlet_option_u32 mask,
                               tartlet_stop_conditions stop, tartlet_sampling sampling) {
  tartlet_generation_options options = {.mask = mask};
  if (f.call) return (tartlet_draft){0};
  if (constraint.handle) options.constraint = (tartlet_option_u32){true, tartlet_constraint_id(constraint)};
  return tartlet_generate_with(context, sampling, stop, options, &f);
}
