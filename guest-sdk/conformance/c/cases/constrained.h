#ifndef CONSTRAINED_H
#define CONSTRAINED_H

#include "transcript.h"

/* Constraints, compiled; a failure is in `f`. */
tartlet_constraint json_schema(const char *schema);
tartlet_constraint regex(const char *pattern);
tartlet_constraint lark(const char *grammar);
#define CHOICES(...) \
  choices((const char *[]){__VA_ARGS__}, sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *))
tartlet_constraint choices(const char *const *texts, size_t number);
tartlet_constraint tokens_only(tartlet_list_token tokens);
tartlet_constraint all_of(const tartlet_constraint *parts, size_t number);
tartlet_constraint any_of(const tartlet_constraint *parts, size_t number);

/* A greedy generation under a constraint; without a handle, without one. */
tartlet_draft constrained(tartlet_context context, tartlet_constraint constraint, uint32_t max_tokens);
tartlet_draft constrained_with(tartlet_context context, tartlet_constraint constraint, tartlet_option_u32 mask,
                               tartlet_stop_conditions stop, tartlet_sampling sampling);

#endif
