/* Made of tartlet:inferlet@0.1.0 by `make bindings`; do not edit. */
#include "tartlet_bindings.h"

#include <stdlib.h>

#include "tartlet_hooks.h"

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name))) extern
#define ADDRESS(pointer) ((int32_t)(intptr_t)(pointer))
#define POINTER(address) ((void *)(intptr_t)(address))
#define LAYOUT(type, size, alignment) \
  _Static_assert(sizeof(type) == (size) && _Alignof(type) == (alignment), "layout of " #type)
#define OFFSET(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)

LAYOUT(tartlet_string, 8, 4);

void tartlet_string_free(tartlet_string *value) {
  free(value->data);
  *value = (tartlet_string){0};
}

LAYOUT(tartlet_level, 1, 1);

LAYOUT(tartlet_run_info, 32, 8);
OFFSET(tartlet_run_info, id, 0);
OFFSET(tartlet_run_info, inferlet, 8);
OFFSET(tartlet_run_info, tenant, 16);
OFFSET(tartlet_run_info, seed, 24);

void tartlet_run_info_free(tartlet_run_info *value) {
  tartlet_string_free(&value->id);
  tartlet_string_free(&value->inferlet);
  tartlet_string_free(&value->tenant);
}

LAYOUT(tartlet_option_u64, 16, 8);
OFFSET(tartlet_option_u64, value, 8);

LAYOUT(tartlet_limit, 32, 8);
OFFSET(tartlet_limit, name, 0);
OFFSET(tartlet_limit, used, 8);
OFFSET(tartlet_limit, allowed, 16);

void tartlet_limit_free(tartlet_limit *value) {
  tartlet_string_free(&value->name);
}

LAYOUT(tartlet_list_limit, 8, 4);

void tartlet_list_limit_free(tartlet_list_limit *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_limit_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_token, 4, 4);

LAYOUT(tartlet_event, 4, 4);

LAYOUT(tartlet_error_code, 1, 1);

LAYOUT(tartlet_error, 20, 4);
OFFSET(tartlet_error, code, 0);
OFFSET(tartlet_error, message, 4);
OFFSET(tartlet_error, hint, 12);

void tartlet_error_free(tartlet_error *value) {
  tartlet_string_free(&value->message);
  tartlet_string_free(&value->hint);
}

LAYOUT(tartlet_list_event, 8, 4);

void tartlet_list_event_free(tartlet_list_event *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_token, 8, 4);

void tartlet_list_token_free(tartlet_list_token *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_string, 8, 4);

void tartlet_list_string_free(tartlet_list_string *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_string_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_models_model_info, 52, 4);
OFFSET(tartlet_models_model_info, name, 0);
OFFSET(tartlet_models_model_info, architecture, 8);
OFFSET(tartlet_models_model_info, context_length, 16);
OFFSET(tartlet_models_model_info, vocabulary_size, 20);
OFFSET(tartlet_models_model_info, page_size, 24);
OFFSET(tartlet_models_model_info, eos_tokens, 28);
OFFSET(tartlet_models_model_info, features, 36);
OFFSET(tartlet_models_model_info, adapters, 44);

void tartlet_models_model_info_free(tartlet_models_model_info *value) {
  tartlet_string_free(&value->name);
  tartlet_string_free(&value->architecture);
  tartlet_list_token_free(&value->eos_tokens);
  tartlet_list_string_free(&value->features);
  tartlet_list_string_free(&value->adapters);
}

LAYOUT(tartlet_option_string, 12, 4);
OFFSET(tartlet_option_string, value, 4);

void tartlet_option_string_free(tartlet_option_string *value) {
  if (value->is_some)
    tartlet_string_free(&value->value);
}

LAYOUT(tartlet_list_u8, 8, 4);

void tartlet_list_u8_free(tartlet_list_u8 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_models_model_info, 8, 4);

void tartlet_list_models_model_info_free(tartlet_list_models_model_info *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_models_model_info_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_place, 24, 4);
OFFSET(tartlet_place, forced, 0);
OFFSET(tartlet_place, may_end, 8);
OFFSET(tartlet_place, is_complete, 9);
OFFSET(tartlet_place, problem, 12);

void tartlet_place_free(tartlet_place *value) {
  tartlet_list_token_free(&value->forced);
  tartlet_option_string_free(&value->problem);
}

LAYOUT(tartlet_list_u32, 8, 4);

void tartlet_list_u32_free(tartlet_list_u32 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_u64, 8, 4);

void tartlet_list_u64_free(tartlet_list_u64 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_role, 1, 1);

LAYOUT(tartlet_save_options, 24, 8);
OFFSET(tartlet_save_options, ttl_ns, 0);
OFFSET(tartlet_save_options, overwrite, 16);

LAYOUT(tartlet_saved_context, 56, 8);
OFFSET(tartlet_saved_context, name, 0);
OFFSET(tartlet_saved_context, model, 8);
OFFSET(tartlet_saved_context, adapter, 16);
OFFSET(tartlet_saved_context, tokens, 28);
OFFSET(tartlet_saved_context, bytes, 32);
OFFSET(tartlet_saved_context, expires_in_ns, 40);

void tartlet_saved_context_free(tartlet_saved_context *value) {
  tartlet_string_free(&value->name);
  tartlet_string_free(&value->model);
  tartlet_option_string_free(&value->adapter);
}

LAYOUT(tartlet_list_saved_context, 8, 4);

void tartlet_list_saved_context_free(tartlet_list_saved_context *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_saved_context_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_tuple_token_f32, 8, 4);

LAYOUT(tartlet_list_tuple_token_f32, 8, 4);

void tartlet_list_tuple_token_f32_free(tartlet_list_tuple_token_f32 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_sampling, 56, 8);
OFFSET(tartlet_sampling, temperature, 0);
OFFSET(tartlet_sampling, top_k, 4);
OFFSET(tartlet_sampling, top_p, 8);
OFFSET(tartlet_sampling, min_p, 12);
OFFSET(tartlet_sampling, repetition_penalty, 16);
OFFSET(tartlet_sampling, presence_penalty, 20);
OFFSET(tartlet_sampling, frequency_penalty, 24);
OFFSET(tartlet_sampling, logit_bias, 28);
OFFSET(tartlet_sampling, seed, 40);

void tartlet_sampling_free(tartlet_sampling *value) {
  tartlet_list_tuple_token_f32_free(&value->logit_bias);
}

LAYOUT(tartlet_option_u32, 8, 4);
OFFSET(tartlet_option_u32, value, 4);

LAYOUT(tartlet_stop_conditions, 28, 4);
OFFSET(tartlet_stop_conditions, max_tokens, 0);
OFFSET(tartlet_stop_conditions, tokens, 8);
OFFSET(tartlet_stop_conditions, strings, 16);
OFFSET(tartlet_stop_conditions, ignore_eos, 24);

void tartlet_stop_conditions_free(tartlet_stop_conditions *value) {
  tartlet_list_token_free(&value->tokens);
  tartlet_list_string_free(&value->strings);
}

LAYOUT(tartlet_speculation, 16, 4);
OFFSET(tartlet_speculation, max_draft, 0);
OFFSET(tartlet_speculation, ngram, 4);
OFFSET(tartlet_speculation, expected, 8);

void tartlet_speculation_free(tartlet_speculation *value) {
  tartlet_list_token_free(&value->expected);
}

LAYOUT(tartlet_option_speculation, 20, 4);
OFFSET(tartlet_option_speculation, value, 4);

void tartlet_option_speculation_free(tartlet_option_speculation *value) {
  if (value->is_some)
    tartlet_speculation_free(&value->value);
}

LAYOUT(tartlet_generation_options, 64, 8);
OFFSET(tartlet_generation_options, streaming, 0);
OFFSET(tartlet_generation_options, chunk_interval_ns, 8);
OFFSET(tartlet_generation_options, log_probabilities, 16);
OFFSET(tartlet_generation_options, constraint, 24);
OFFSET(tartlet_generation_options, speculation, 32);
OFFSET(tartlet_generation_options, mask, 52);

void tartlet_generation_options_free(tartlet_generation_options *value) {
  tartlet_option_speculation_free(&value->speculation);
}

LAYOUT(tartlet_finish_reason, 1, 1);

LAYOUT(tartlet_usage, 48, 8);
OFFSET(tartlet_usage, prompt_tokens, 0);
OFFSET(tartlet_usage, cached_tokens, 4);
OFFSET(tartlet_usage, generated_tokens, 8);
OFFSET(tartlet_usage, forced_tokens, 12);
OFFSET(tartlet_usage, draft_tokens, 16);
OFFSET(tartlet_usage, accepted_tokens, 20);
OFFSET(tartlet_usage, pages, 24);
OFFSET(tartlet_usage, shared_pages, 28);
OFFSET(tartlet_usage, first_token_ns, 32);
OFFSET(tartlet_usage, total_ns, 40);

LAYOUT(tartlet_generation_token_log_probability, 8, 4);
OFFSET(tartlet_generation_token_log_probability, token, 0);
OFFSET(tartlet_generation_token_log_probability, log_probability, 4);

LAYOUT(tartlet_list_generation_token_log_probability, 8, 4);

void tartlet_list_generation_token_log_probability_free(tartlet_list_generation_token_log_probability *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_position_log_probabilities, 16, 4);
OFFSET(tartlet_position_log_probabilities, chosen, 0);
OFFSET(tartlet_position_log_probabilities, top, 8);

void tartlet_position_log_probabilities_free(tartlet_position_log_probabilities *value) {
  tartlet_list_generation_token_log_probability_free(&value->top);
}

LAYOUT(tartlet_finish, 64, 8);
OFFSET(tartlet_finish, reason, 0);
OFFSET(tartlet_finish, stop_string, 4);
OFFSET(tartlet_finish, usage, 16);

void tartlet_finish_free(tartlet_finish *value) {
  tartlet_option_string_free(&value->stop_string);
}

LAYOUT(tartlet_list_position_log_probabilities, 8, 4);

void tartlet_list_position_log_probabilities_free(tartlet_list_position_log_probabilities *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_position_log_probabilities_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_option_finish, 72, 8);
OFFSET(tartlet_option_finish, value, 8);

void tartlet_option_finish_free(tartlet_option_finish *value) {
  if (value->is_some)
    tartlet_finish_free(&value->value);
}

LAYOUT(tartlet_chunk, 96, 8);
OFFSET(tartlet_chunk, text, 0);
OFFSET(tartlet_chunk, tokens, 8);
OFFSET(tartlet_chunk, log_probabilities, 16);
OFFSET(tartlet_chunk, finish, 24);

void tartlet_chunk_free(tartlet_chunk *value) {
  tartlet_string_free(&value->text);
  tartlet_list_token_free(&value->tokens);
  tartlet_list_position_log_probabilities_free(&value->log_probabilities);
  tartlet_option_finish_free(&value->finish);
}

LAYOUT(tartlet_sequence_chunk, 112, 8);
OFFSET(tartlet_sequence_chunk, sequence, 0);
OFFSET(tartlet_sequence_chunk, text_backtrack, 4);
OFFSET(tartlet_sequence_chunk, text, 8);
OFFSET(tartlet_sequence_chunk, token_backtrack, 16);
OFFSET(tartlet_sequence_chunk, tokens, 20);
OFFSET(tartlet_sequence_chunk, log_probabilities, 28);
OFFSET(tartlet_sequence_chunk, finish, 40);

void tartlet_sequence_chunk_free(tartlet_sequence_chunk *value) {
  tartlet_string_free(&value->text);
  tartlet_list_token_free(&value->tokens);
  tartlet_list_position_log_probabilities_free(&value->log_probabilities);
  tartlet_option_finish_free(&value->finish);
}

LAYOUT(tartlet_list_sequence_chunk, 8, 4);

void tartlet_list_sequence_chunk_free(tartlet_list_sequence_chunk *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_sequence_chunk_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_controlled_chunks, 12, 4);
OFFSET(tartlet_controlled_chunks, chunks, 0);
OFFSET(tartlet_controlled_chunks, ended, 8);

void tartlet_controlled_chunks_free(tartlet_controlled_chunks *value) {
  tartlet_list_sequence_chunk_free(&value->chunks);
}

LAYOUT(tartlet_option_sampling, 64, 8);
OFFSET(tartlet_option_sampling, value, 8);

void tartlet_option_sampling_free(tartlet_option_sampling *value) {
  if (value->is_some)
    tartlet_sampling_free(&value->value);
}

LAYOUT(tartlet_request, 96, 8);
OFFSET(tartlet_request, row, 0);
OFFSET(tartlet_request, sampling, 8);
OFFSET(tartlet_request, sample_index, 72);
OFFSET(tartlet_request, top, 76);
OFFSET(tartlet_request, given, 80);
OFFSET(tartlet_request, entropy, 88);
OFFSET(tartlet_request, logits, 89);

void tartlet_request_free(tartlet_request *value) {
  tartlet_option_sampling_free(&value->sampling);
  tartlet_list_token_free(&value->given);
}

LAYOUT(tartlet_option_list_u32, 12, 4);
OFFSET(tartlet_option_list_u32, value, 4);

void tartlet_option_list_u32_free(tartlet_option_list_u32 *value) {
  if (value->is_some)
    tartlet_list_u32_free(&value->value);
}

LAYOUT(tartlet_list_request, 8, 4);

void tartlet_list_request_free(tartlet_list_request *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_request_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_forward_options, 36, 4);
OFFSET(tartlet_forward_options, parents, 0);
OFFSET(tartlet_forward_options, positions, 12);
OFFSET(tartlet_forward_options, log_probabilities, 24);
OFFSET(tartlet_forward_options, requests, 28);

void tartlet_forward_options_free(tartlet_forward_options *value) {
  tartlet_option_list_u32_free(&value->parents);
  tartlet_option_list_u32_free(&value->positions);
  tartlet_list_request_free(&value->requests);
}

LAYOUT(tartlet_option_generation_token_log_probability, 12, 4);
OFFSET(tartlet_option_generation_token_log_probability, value, 4);

LAYOUT(tartlet_list_f32, 8, 4);

void tartlet_list_f32_free(tartlet_list_f32 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_option_f32, 8, 4);
OFFSET(tartlet_option_f32, value, 4);

LAYOUT(tartlet_row, 44, 4);
OFFSET(tartlet_row, sampled, 0);
OFFSET(tartlet_row, top, 12);
OFFSET(tartlet_row, given, 20);
OFFSET(tartlet_row, entropy, 28);
OFFSET(tartlet_row, logits, 36);

void tartlet_row_free(tartlet_row *value) {
  tartlet_list_generation_token_log_probability_free(&value->top);
  tartlet_list_f32_free(&value->given);
  tartlet_list_u64_free(&value->logits);
}

LAYOUT(tartlet_list_row, 8, 4);

void tartlet_list_row_free(tartlet_list_row *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_row_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_findings, 16, 4);
OFFSET(tartlet_findings, log_probabilities, 0);
OFFSET(tartlet_findings, rows, 8);

void tartlet_findings_free(tartlet_findings *value) {
  tartlet_list_f32_free(&value->log_probabilities);
  tartlet_list_row_free(&value->rows);
}

LAYOUT(tartlet_option_list_token, 12, 4);
OFFSET(tartlet_option_list_token, value, 4);

void tartlet_option_list_token_free(tartlet_option_list_token *value) {
  if (value->is_some)
    tartlet_list_token_free(&value->value);
}

LAYOUT(tartlet_start_answer, 20, 4);
OFFSET(tartlet_start_answer, prompt, 0);
OFFSET(tartlet_start_answer, log_probabilities, 12);

void tartlet_start_answer_free(tartlet_start_answer *value) {
  tartlet_option_list_token_free(&value->prompt);
}

LAYOUT(tartlet_steering_token_log_probability, 8, 4);
OFFSET(tartlet_steering_token_log_probability, token, 0);
OFFSET(tartlet_steering_token_log_probability, log_probability, 4);

LAYOUT(tartlet_list_steering_token_log_probability, 8, 4);

void tartlet_list_steering_token_log_probability_free(tartlet_list_steering_token_log_probability *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_sampled_log_probabilities, 16, 4);
OFFSET(tartlet_sampled_log_probabilities, chosen, 0);
OFFSET(tartlet_sampled_log_probabilities, top, 8);

void tartlet_sampled_log_probabilities_free(tartlet_sampled_log_probabilities *value) {
  tartlet_list_steering_token_log_probability_free(&value->top);
}

LAYOUT(tartlet_option_token, 8, 4);
OFFSET(tartlet_option_token, value, 4);

LAYOUT(tartlet_option_sampled_log_probabilities, 20, 4);
OFFSET(tartlet_option_sampled_log_probabilities, value, 4);

void tartlet_option_sampled_log_probabilities_free(tartlet_option_sampled_log_probabilities *value) {
  if (value->is_some)
    tartlet_sampled_log_probabilities_free(&value->value);
}

LAYOUT(tartlet_option_error, 24, 4);
OFFSET(tartlet_option_error, value, 4);

void tartlet_option_error_free(tartlet_option_error *value) {
  if (value->is_some)
    tartlet_error_free(&value->value);
}

LAYOUT(tartlet_steering_outcome, 88, 4);
OFFSET(tartlet_steering_outcome, sequence, 0);
OFFSET(tartlet_steering_outcome, backtrack, 4);
OFFSET(tartlet_steering_outcome, tokens, 8);
OFFSET(tartlet_steering_outcome, sampled, 16);
OFFSET(tartlet_steering_outcome, siblings, 24);
OFFSET(tartlet_steering_outcome, log_probabilities, 32);
OFFSET(tartlet_steering_outcome, refused, 52);
OFFSET(tartlet_steering_outcome, finish_reason, 76);

void tartlet_steering_outcome_free(tartlet_steering_outcome *value) {
  tartlet_list_token_free(&value->tokens);
  tartlet_list_u32_free(&value->siblings);
  tartlet_option_sampled_log_probabilities_free(&value->log_probabilities);
  tartlet_option_error_free(&value->refused);
  tartlet_option_string_free(&value->finish_reason);
}

LAYOUT(tartlet_steering_splice, 20, 4);
OFFSET(tartlet_steering_splice, when_sampled, 0);
OFFSET(tartlet_steering_splice, backtrack, 8);
OFFSET(tartlet_steering_splice, tokens, 12);

void tartlet_steering_splice_free(tartlet_steering_splice *value) {
  tartlet_list_token_free(&value->when_sampled);
  tartlet_list_token_free(&value->tokens);
}

LAYOUT(tartlet_list_steering_splice, 8, 4);

void tartlet_list_steering_splice_free(tartlet_list_steering_splice *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_steering_splice_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_branch, 48, 4);
OFFSET(tartlet_branch, sample, 0);
OFFSET(tartlet_branch, allow, 4);
OFFSET(tartlet_branch, mask, 16);
OFFSET(tartlet_branch, bias, 24);
OFFSET(tartlet_branch, temperature, 32);
OFFSET(tartlet_branch, splices, 40);

void tartlet_branch_free(tartlet_branch *value) {
  tartlet_option_list_token_free(&value->allow);
  tartlet_list_tuple_token_f32_free(&value->bias);
  tartlet_list_steering_splice_free(&value->splices);
}

LAYOUT(tartlet_list_branch, 8, 4);

void tartlet_list_branch_free(tartlet_list_branch *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_branch_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_decision, 12, 4);
OFFSET(tartlet_decision, branches, 4);
OFFSET(tartlet_decision, wait, 4);

void tartlet_decision_free(tartlet_decision *value) {
  if (value->which == TARTLET_DECISION_BRANCHES)
    tartlet_list_branch_free(&value->branches);
  if (value->which == TARTLET_DECISION_WAIT)
    tartlet_list_event_free(&value->wait);
}

LAYOUT(tartlet_stepping_splice, 20, 4);
OFFSET(tartlet_stepping_splice, when_sampled, 0);
OFFSET(tartlet_stepping_splice, backtrack, 8);
OFFSET(tartlet_stepping_splice, tokens, 12);

void tartlet_stepping_splice_free(tartlet_stepping_splice *value) {
  tartlet_list_token_free(&value->when_sampled);
  tartlet_list_token_free(&value->tokens);
}

LAYOUT(tartlet_tuple_u32_f32, 8, 4);

LAYOUT(tartlet_list_tuple_u32_f32, 8, 4);

void tartlet_list_tuple_u32_f32_free(tartlet_list_tuple_u32_f32 *value) {
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_stepping_splice, 8, 4);

void tartlet_list_stepping_splice_free(tartlet_list_stepping_splice *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_stepping_splice_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_answer, 56, 4);
OFFSET(tartlet_answer, sample, 0);
OFFSET(tartlet_answer, allow, 4);
OFFSET(tartlet_answer, mask, 16);
OFFSET(tartlet_answer, bias, 24);
OFFSET(tartlet_answer, boosts, 32);
OFFSET(tartlet_answer, temperature, 40);
OFFSET(tartlet_answer, splices, 48);

void tartlet_answer_free(tartlet_answer *value) {
  tartlet_option_list_token_free(&value->allow);
  tartlet_list_tuple_token_f32_free(&value->bias);
  tartlet_list_tuple_u32_f32_free(&value->boosts);
  tartlet_list_stepping_splice_free(&value->splices);
}

LAYOUT(tartlet_option_position_log_probabilities, 20, 4);
OFFSET(tartlet_option_position_log_probabilities, value, 4);

void tartlet_option_position_log_probabilities_free(tartlet_option_position_log_probabilities *value) {
  if (value->is_some)
    tartlet_position_log_probabilities_free(&value->value);
}

LAYOUT(tartlet_stepping_outcome, 128, 8);
OFFSET(tartlet_stepping_outcome, backtrack, 0);
OFFSET(tartlet_stepping_outcome, tokens, 4);
OFFSET(tartlet_stepping_outcome, sampled, 12);
OFFSET(tartlet_stepping_outcome, text_backtrack, 20);
OFFSET(tartlet_stepping_outcome, text, 24);
OFFSET(tartlet_stepping_outcome, log_probabilities, 32);
OFFSET(tartlet_stepping_outcome, finish, 56);

void tartlet_stepping_outcome_free(tartlet_stepping_outcome *value) {
  tartlet_list_token_free(&value->tokens);
  tartlet_string_free(&value->text);
  tartlet_option_position_log_probabilities_free(&value->log_probabilities);
  tartlet_option_finish_free(&value->finish);
}

LAYOUT(tartlet_stepping_options, 24, 4);
OFFSET(tartlet_stepping_options, log_probabilities, 0);
OFFSET(tartlet_stepping_options, constraint, 8);
OFFSET(tartlet_stepping_options, mask, 16);

LAYOUT(tartlet_tuple_context_steps, 8, 4);

LAYOUT(tartlet_variable, 16, 8);
OFFSET(tartlet_variable, version, 0);
OFFSET(tartlet_variable, value, 8);

void tartlet_variable_free(tartlet_variable *value) {
  tartlet_string_free(&value->value);
}

LAYOUT(tartlet_swap, 24, 8);
OFFSET(tartlet_swap, written, 0);
OFFSET(tartlet_swap, now, 8);

void tartlet_swap_free(tartlet_swap *value) {
  tartlet_variable_free(&value->now);
}

LAYOUT(tartlet_variable_version, 16, 8);
OFFSET(tartlet_variable_version, name, 0);
OFFSET(tartlet_variable_version, version, 8);

void tartlet_variable_version_free(tartlet_variable_version *value) {
  tartlet_string_free(&value->name);
}

LAYOUT(tartlet_option_variable, 24, 8);
OFFSET(tartlet_option_variable, value, 8);

void tartlet_option_variable_free(tartlet_option_variable *value) {
  if (value->is_some)
    tartlet_variable_free(&value->value);
}

LAYOUT(tartlet_list_variable_version, 8, 4);

void tartlet_list_variable_version_free(tartlet_list_variable_version *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_variable_version_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_result_string_string, 12, 4);

void tartlet_result_string_string_free(tartlet_result_string_string *value) {
  if (!value->is_error)
    tartlet_string_free(&value->ok);
  if (value->is_error)
    tartlet_string_free(&value->error);
}

LAYOUT(tartlet_result_start_answer_string, 24, 4);

void tartlet_result_start_answer_string_free(tartlet_result_start_answer_string *value) {
  if (!value->is_error)
    tartlet_start_answer_free(&value->ok);
  if (value->is_error)
    tartlet_string_free(&value->error);
}

LAYOUT(tartlet_list_steering_outcome, 8, 4);

void tartlet_list_steering_outcome_free(tartlet_list_steering_outcome *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_steering_outcome_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_list_decision, 8, 4);

void tartlet_list_decision_free(tartlet_list_decision *value) {
  for (size_t i = 0; i < value->length; i++)
    tartlet_decision_free(&value->data[i]);
  free(value->data);
  value->data = NULL;
  value->length = 0;
}

LAYOUT(tartlet_result_list_decision_string, 12, 4);

void tartlet_result_list_decision_string_free(tartlet_result_list_decision_string *value) {
  if (!value->is_error)
    tartlet_list_decision_free(&value->ok);
  if (value->is_error)
    tartlet_string_free(&value->error);
}

IMPORT("tartlet:inferlet/log@0.1.0", "print")
void import_log_print(int32_t, int32_t);

void tartlet_log_print(tartlet_string text) {
  import_log_print(ADDRESS(text.data), (int32_t)text.length);
}

IMPORT("tartlet:inferlet/log@0.1.0", "log")
void import_log_log(int32_t, int32_t, int32_t);

void tartlet_log_log(tartlet_level level, tartlet_string message) {
  import_log_log((int32_t)level, ADDRESS(message.data), (int32_t)message.length);
}

IMPORT("tartlet:inferlet/runs@0.1.0", "info")
void import_runs_info(int32_t);

tartlet_run_info tartlet_runs_info(void) {
  tartlet_run_info returned;
  import_runs_info(ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/runs@0.1.0", "limits")
void import_runs_limits(int32_t);

tartlet_list_limit tartlet_runs_limits(void) {
  tartlet_list_limit returned;
  import_runs_limits(ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/events@0.1.0", "poll")
void import_events_poll(int32_t, int32_t, int32_t, int64_t, int32_t);

tartlet_list_event tartlet_events_poll(tartlet_list_event events, tartlet_option_u64 timeout_ns) {
  tartlet_list_event returned;
  import_events_poll(ADDRESS(events.data), (int32_t)events.length, (int32_t)timeout_ns.is_some,
      (int64_t)timeout_ns.value, ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/events@0.1.0", "timer")
int32_t import_events_timer(int64_t);

tartlet_event tartlet_events_timer(uint64_t delay_ns) {
  return (tartlet_event)import_events_timer((int64_t)delay_ns);
}

IMPORT("tartlet:inferlet/events@0.1.0", "outcome")
void import_events_outcome(int32_t, int32_t);

void tartlet_events_outcome(tartlet_event event, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_events_outcome((int32_t)event, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_events_outcome", &returned.error, failure);
}

IMPORT("tartlet:inferlet/events@0.1.0", "drop-event")
void import_events_drop_event(int32_t);

void tartlet_events_drop_event(tartlet_event event) {
  import_events_drop_event((int32_t)event);
}

IMPORT("tartlet:inferlet/models@0.1.0", "[resource-drop]model")
void import_model_drop(int32_t);

void tartlet_model_drop(tartlet_model model) {
  import_model_drop(model.handle);
}

IMPORT("tartlet:inferlet/models@0.1.0", "[static]model.open")
void import_model_open(int32_t, int32_t, int32_t, int32_t);

tartlet_model tartlet_model_open(tartlet_option_string name, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_model){0};
  struct { bool is_error; union { tartlet_model ok; tartlet_error error; }; } returned;
  import_model_open((int32_t)name.is_some, ADDRESS(name.value.data), (int32_t)name.value.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_model_open", &returned.error, failure);
  return returned.is_error ? (tartlet_model){0} : returned.ok;
}

IMPORT("tartlet:inferlet/models@0.1.0", "[method]model.info")
void import_model_info(int32_t, int32_t);

tartlet_models_model_info tartlet_model_info(tartlet_model self) {
  tartlet_models_model_info returned;
  import_model_info(self.handle, ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/models@0.1.0", "[method]model.tokenize")
void import_model_tokenize(int32_t, int32_t, int32_t, int32_t);

tartlet_list_token tartlet_model_tokenize(tartlet_model self, tartlet_string text, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_list_token){0};
  struct { bool is_error; union { tartlet_list_token ok; tartlet_error error; }; } returned;
  import_model_tokenize(self.handle, ADDRESS(text.data), (int32_t)text.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_model_tokenize", &returned.error, failure);
  return returned.is_error ? (tartlet_list_token){0} : returned.ok;
}

IMPORT("tartlet:inferlet/models@0.1.0", "[method]model.detokenize")
void import_model_detokenize(int32_t, int32_t, int32_t, int32_t);

tartlet_string tartlet_model_detokenize(tartlet_model self, tartlet_list_token tokens, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_string){0};
  struct { bool is_error; union { tartlet_string ok; tartlet_error error; }; } returned;
  import_model_detokenize(self.handle, ADDRESS(tokens.data), (int32_t)tokens.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_model_detokenize", &returned.error, failure);
  return returned.is_error ? (tartlet_string){0} : returned.ok;
}

IMPORT("tartlet:inferlet/models@0.1.0", "[method]model.token-bytes")
void import_model_token_bytes(int32_t, int32_t, int32_t);

tartlet_list_u8 tartlet_model_token_bytes(tartlet_model self, tartlet_token token, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_list_u8){0};
  struct { bool is_error; union { tartlet_list_u8 ok; tartlet_error error; }; } returned;
  import_model_token_bytes(self.handle, (int32_t)token, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_model_token_bytes", &returned.error, failure);
  return returned.is_error ? (tartlet_list_u8){0} : returned.ok;
}

IMPORT("tartlet:inferlet/models@0.1.0", "[method]model.vocabulary")
void import_model_vocabulary(int32_t, int32_t, int32_t, int32_t);

tartlet_string tartlet_model_vocabulary(tartlet_model self, tartlet_token first, uint32_t count,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_string){0};
  struct { bool is_error; union { tartlet_string ok; tartlet_error error; }; } returned;
  import_model_vocabulary(self.handle, (int32_t)first, (int32_t)count, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_model_vocabulary", &returned.error, failure);
  return returned.is_error ? (tartlet_string){0} : returned.ok;
}

IMPORT("tartlet:inferlet/models@0.1.0", "list-models")
void import_models_list_models(int32_t);

tartlet_list_models_model_info tartlet_models_list_models(void) {
  tartlet_list_models_model_info returned;
  import_models_list_models(ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[resource-drop]constraint")
void import_constraint_drop(int32_t);

void tartlet_constraint_drop(tartlet_constraint constraint) {
  import_constraint_drop(constraint.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[resource-drop]mask")
void import_mask_drop(int32_t);

void tartlet_mask_drop(tartlet_mask mask) {
  import_mask_drop(mask.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[resource-drop]matcher")
void import_matcher_drop(int32_t);

void tartlet_matcher_drop(tartlet_matcher matcher) {
  import_matcher_drop(matcher.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.json-schema")
void import_constraint_json_schema(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_json_schema(tartlet_model model, tartlet_string schema,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_json_schema(model.handle, ADDRESS(schema.data), (int32_t)schema.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_json_schema", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.regex")
void import_constraint_regex(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_regex(tartlet_model model, tartlet_string pattern, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_regex(model.handle, ADDRESS(pattern.data), (int32_t)pattern.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_regex", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.lark")
void import_constraint_lark(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_lark(tartlet_model model, tartlet_string grammar, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_lark(model.handle, ADDRESS(grammar.data), (int32_t)grammar.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_lark", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.choices")
void import_constraint_choices(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_choices(tartlet_model model, tartlet_list_string texts,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_choices(model.handle, ADDRESS(texts.data), (int32_t)texts.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_choices", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.substring")
void import_constraint_substring(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_substring(tartlet_model model, tartlet_string text, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_substring(model.handle, ADDRESS(text.data), (int32_t)text.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_substring", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.tokens")
void import_constraint_tokens(int32_t, int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_tokens(tartlet_model model, tartlet_list_token allowed,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_tokens(model.handle, ADDRESS(allowed.data), (int32_t)allowed.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_tokens", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.of-mask")
void import_constraint_of_mask(int32_t, int32_t);

tartlet_constraint tartlet_constraint_of_mask(tartlet_mask mask, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_of_mask(mask.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_of_mask", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.all-of")
void import_constraint_all_of(int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_all_of(tartlet_list_u32 parts, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_all_of(ADDRESS(parts.data), (int32_t)parts.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_all_of", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]constraint.any-of")
void import_constraint_any_of(int32_t, int32_t, int32_t);

tartlet_constraint tartlet_constraint_any_of(tartlet_list_u32 parts, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_constraint){0};
  struct { bool is_error; union { tartlet_constraint ok; tartlet_error error; }; } returned;
  import_constraint_any_of(ADDRESS(parts.data), (int32_t)parts.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_constraint_any_of", &returned.error, failure);
  return returned.is_error ? (tartlet_constraint){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]constraint.ready")
int32_t import_constraint_ready(int32_t);

tartlet_event tartlet_constraint_ready(tartlet_constraint self) {
  return (tartlet_event)import_constraint_ready(self.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]constraint.id")
int32_t import_constraint_id(int32_t);

uint32_t tartlet_constraint_id(tartlet_constraint self) {
  return (uint32_t)import_constraint_id(self.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]mask.tokens")
void import_mask_tokens(int32_t, int32_t, int32_t, int32_t);

tartlet_mask tartlet_mask_tokens(tartlet_model model, tartlet_list_token tokens, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_tokens(model.handle, ADDRESS(tokens.data), (int32_t)tokens.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_tokens", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]mask.words")
void import_mask_words(int32_t, int32_t, int32_t, int32_t);

tartlet_mask tartlet_mask_words(tartlet_model model, tartlet_list_u64 words, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_words(model.handle, ADDRESS(words.data), (int32_t)words.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_words", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]mask.all")
void import_mask_all(int32_t, int32_t);

tartlet_mask tartlet_mask_all(tartlet_model model, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_all(model.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_all", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.intersection")
void import_mask_intersection(int32_t, int32_t, int32_t, int32_t);

tartlet_mask tartlet_mask_intersection(tartlet_mask self, tartlet_list_u32 others, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_intersection(self.handle, ADDRESS(others.data), (int32_t)others.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_intersection", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.union")
void import_mask_union(int32_t, int32_t, int32_t, int32_t);

tartlet_mask tartlet_mask_union(tartlet_mask self, tartlet_list_u32 others, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_union(self.handle, ADDRESS(others.data), (int32_t)others.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_union", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.complement")
void import_mask_complement(int32_t, int32_t);

tartlet_mask tartlet_mask_complement(tartlet_mask self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_complement(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_complement", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.restrict")
void import_mask_restrict(int32_t, int32_t, int32_t, int32_t);

tartlet_mask tartlet_mask_restrict(tartlet_mask self, tartlet_list_token tokens, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_mask_restrict(self.handle, ADDRESS(tokens.data), (int32_t)tokens.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_restrict", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.count")
int32_t import_mask_count(int32_t);

uint32_t tartlet_mask_count(tartlet_mask self) {
  return (uint32_t)import_mask_count(self.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.allows")
void import_mask_allows(int32_t, int32_t, int32_t);

bool tartlet_mask_allows(tartlet_mask self, tartlet_token token, tartlet_failure *failure) {
  if (failure && failure->call) return (bool){0};
  struct { bool is_error; union { bool ok; tartlet_error error; }; } returned;
  import_mask_allows(self.handle, (int32_t)token, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_mask_allows", &returned.error, failure);
  return returned.is_error ? (bool){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]mask.id")
int32_t import_mask_id(int32_t);

uint32_t tartlet_mask_id(tartlet_mask self) {
  return (uint32_t)import_mask_id(self.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[static]matcher.begin")
void import_matcher_begin(int32_t, int32_t);

tartlet_matcher tartlet_matcher_begin(tartlet_constraint constraint, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_matcher){0};
  struct { bool is_error; union { tartlet_matcher ok; tartlet_error error; }; } returned;
  import_matcher_begin(constraint.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_begin", &returned.error, failure);
  return returned.is_error ? (tartlet_matcher){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.ready")
int32_t import_matcher_ready(int32_t);

tartlet_event tartlet_matcher_ready(tartlet_matcher self) {
  return (tartlet_event)import_matcher_ready(self.handle);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.place")
void import_matcher_place(int32_t, int32_t);

tartlet_place tartlet_matcher_place(tartlet_matcher self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_place){0};
  struct { bool is_error; union { tartlet_place ok; tartlet_error error; }; } returned;
  import_matcher_place(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_place", &returned.error, failure);
  return returned.is_error ? (tartlet_place){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.mask")
void import_matcher_mask(int32_t, int32_t);

tartlet_mask tartlet_matcher_mask(tartlet_matcher self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_mask){0};
  struct { bool is_error; union { tartlet_mask ok; tartlet_error error; }; } returned;
  import_matcher_mask(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_mask", &returned.error, failure);
  return returned.is_error ? (tartlet_mask){0} : returned.ok;
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.advance")
void import_matcher_advance(int32_t, int32_t, int32_t, int32_t);

void tartlet_matcher_advance(tartlet_matcher self, tartlet_list_token tokens, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_matcher_advance(self.handle, ADDRESS(tokens.data), (int32_t)tokens.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_advance", &returned.error, failure);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.rollback")
void import_matcher_rollback(int32_t, int32_t, int32_t);

void tartlet_matcher_rollback(tartlet_matcher self, uint32_t count, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_matcher_rollback(self.handle, (int32_t)count, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_rollback", &returned.error, failure);
}

IMPORT("tartlet:inferlet/constraints@0.1.0", "[method]matcher.fork")
void import_matcher_fork(int32_t, int32_t);

tartlet_matcher tartlet_matcher_fork(tartlet_matcher self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_matcher){0};
  struct { bool is_error; union { tartlet_matcher ok; tartlet_error error; }; } returned;
  import_matcher_fork(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_matcher_fork", &returned.error, failure);
  return returned.is_error ? (tartlet_matcher){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[resource-drop]context")
void import_context_drop(int32_t);

void tartlet_context_drop(tartlet_context context) {
  import_context_drop(context.handle);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[resource-drop]opening")
void import_opening_drop(int32_t);

void tartlet_opening_drop(tartlet_opening opening) {
  import_opening_drop(opening.handle);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[static]context.create")
void import_context_create(int32_t, int32_t, int32_t, int32_t, int32_t);

tartlet_context tartlet_context_create(tartlet_model model, tartlet_option_string adapter, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_context){0};
  struct { bool is_error; union { tartlet_context ok; tartlet_error error; }; } returned;
  import_context_create(model.handle, (int32_t)adapter.is_some, ADDRESS(adapter.value.data),
      (int32_t)adapter.value.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_create", &returned.error, failure);
  return returned.is_error ? (tartlet_context){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.fill")
void import_context_fill(int32_t, int32_t, int32_t, int32_t);

void tartlet_context_fill(tartlet_context self, tartlet_string text, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_context_fill(self.handle, ADDRESS(text.data), (int32_t)text.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_fill", &returned.error, failure);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.fill-tokens")
void import_context_fill_tokens(int32_t, int32_t, int32_t, int32_t);

void tartlet_context_fill_tokens(tartlet_context self, tartlet_list_token tokens, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_context_fill_tokens(self.handle, ADDRESS(tokens.data), (int32_t)tokens.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_fill_tokens", &returned.error, failure);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.fill-message")
void import_context_fill_message(int32_t, int32_t, int32_t, int32_t, int32_t);

void tartlet_context_fill_message(tartlet_context self, tartlet_role role, tartlet_string text,
    tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_context_fill_message(self.handle, (int32_t)role, ADDRESS(text.data), (int32_t)text.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_fill_message", &returned.error, failure);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.cue")
void import_context_cue(int32_t, int32_t);

void tartlet_context_cue(tartlet_context self, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_context_cue(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_cue", &returned.error, failure);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.flush")
void import_context_flush(int32_t, int32_t);

tartlet_event tartlet_context_flush(tartlet_context self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_event){0};
  struct { bool is_error; union { tartlet_event ok; tartlet_error error; }; } returned;
  import_context_flush(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_flush", &returned.error, failure);
  return returned.is_error ? (tartlet_event){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.fork")
void import_context_fork(int32_t, int32_t);

tartlet_context tartlet_context_fork(tartlet_context self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_context){0};
  struct { bool is_error; union { tartlet_context ok; tartlet_error error; }; } returned;
  import_context_fork(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_fork", &returned.error, failure);
  return returned.is_error ? (tartlet_context){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.length")
int32_t import_context_length(int32_t);

uint32_t tartlet_context_length(tartlet_context self) {
  return (uint32_t)import_context_length(self.handle);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.positions")
int32_t import_context_positions(int32_t);

uint32_t tartlet_context_positions(tartlet_context self) {
  return (uint32_t)import_context_positions(self.handle);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.tokens")
void import_context_tokens(int32_t, int32_t);

tartlet_list_token tartlet_context_tokens(tartlet_context self) {
  tartlet_list_token returned;
  import_context_tokens(self.handle, ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.truncate")
void import_context_truncate(int32_t, int32_t, int32_t);

void tartlet_context_truncate(tartlet_context self, uint32_t length, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_context_truncate(self.handle, (int32_t)length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_truncate", &returned.error, failure);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.evict")
void import_context_evict(int32_t, int32_t, int32_t, int32_t);

tartlet_event tartlet_context_evict(tartlet_context self, uint32_t start, uint32_t end, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_event){0};
  struct { bool is_error; union { tartlet_event ok; tartlet_error error; }; } returned;
  import_context_evict(self.handle, (int32_t)start, (int32_t)end, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_evict", &returned.error, failure);
  return returned.is_error ? (tartlet_event){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]context.save")
void import_context_save(int32_t, int32_t, int32_t, int32_t, int64_t, int32_t, int32_t);

tartlet_event tartlet_context_save(tartlet_context self, tartlet_string name, const tartlet_save_options *options,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_event){0};
  struct { bool is_error; union { tartlet_event ok; tartlet_error error; }; } returned;
  import_context_save(self.handle, ADDRESS(name.data), (int32_t)name.length, (int32_t)options->ttl_ns.is_some,
      (int64_t)options->ttl_ns.value, (int32_t)options->overwrite, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_save", &returned.error, failure);
  return returned.is_error ? (tartlet_event){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[static]context.open")
void import_context_open(int32_t, int32_t, int32_t, int32_t);

tartlet_opening tartlet_context_open(tartlet_model model, tartlet_string name, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_opening){0};
  struct { bool is_error; union { tartlet_opening ok; tartlet_error error; }; } returned;
  import_context_open(model.handle, ADDRESS(name.data), (int32_t)name.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_context_open", &returned.error, failure);
  return returned.is_error ? (tartlet_opening){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]opening.ready")
int32_t import_opening_ready(int32_t);

tartlet_event tartlet_opening_ready(tartlet_opening self) {
  return (tartlet_event)import_opening_ready(self.handle);
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "[method]opening.take")
void import_opening_take(int32_t, int32_t);

tartlet_context tartlet_opening_take(tartlet_opening self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_context){0};
  struct { bool is_error; union { tartlet_context ok; tartlet_error error; }; } returned;
  import_opening_take(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_opening_take", &returned.error, failure);
  return returned.is_error ? (tartlet_context){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "list-saved")
void import_contexts_list_saved(int32_t);

tartlet_list_saved_context tartlet_contexts_list_saved(tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_list_saved_context){0};
  struct { bool is_error; union { tartlet_list_saved_context ok; tartlet_error error; }; } returned;
  import_contexts_list_saved(ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_contexts_list_saved", &returned.error, failure);
  return returned.is_error ? (tartlet_list_saved_context){0} : returned.ok;
}

IMPORT("tartlet:inferlet/contexts@0.1.0", "delete-saved")
void import_contexts_delete_saved(int32_t, int32_t, int32_t);

void tartlet_contexts_delete_saved(tartlet_string name, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_contexts_delete_saved(ADDRESS(name.data), (int32_t)name.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_contexts_delete_saved", &returned.error, failure);
}

IMPORT("tartlet:inferlet/generation@0.1.0", "[resource-drop]generation")
void import_generation_drop(int32_t);

void tartlet_generation_drop(tartlet_generation generation) {
  import_generation_drop(generation.handle);
}

IMPORT("tartlet:inferlet/generation@0.1.0", "[method]generation.ready")
int32_t import_generation_ready(int32_t);

tartlet_event tartlet_generation_ready(tartlet_generation self) {
  return (tartlet_event)import_generation_ready(self.handle);
}

IMPORT("tartlet:inferlet/generation@0.1.0", "[method]generation.read")
void import_generation_read(int32_t, int32_t);

tartlet_chunk tartlet_generation_read(tartlet_generation self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_chunk){0};
  struct { bool is_error; union { tartlet_chunk ok; tartlet_error error; }; } returned;
  import_generation_read(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_generation_read", &returned.error, failure);
  return returned.is_error ? (tartlet_chunk){0} : returned.ok;
}

IMPORT("tartlet:inferlet/generation@0.1.0", "[method]generation.next")
void import_generation_next(int32_t, int32_t);

tartlet_chunk tartlet_generation_next(tartlet_generation self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_chunk){0};
  struct { bool is_error; union { tartlet_chunk ok; tartlet_error error; }; } returned;
  import_generation_next(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_generation_next", &returned.error, failure);
  return returned.is_error ? (tartlet_chunk){0} : returned.ok;
}

IMPORT("tartlet:inferlet/generation@0.1.0", "[method]generation.cancel")
void import_generation_cancel(int32_t);

void tartlet_generation_cancel(tartlet_generation self) {
  import_generation_cancel(self.handle);
}

IMPORT("tartlet:inferlet/generation@0.1.0", "generate")
void import_generation_generate(int32_t, int32_t);

tartlet_generation tartlet_generation_generate(tartlet_context context, const tartlet_sampling *sampling,
    const tartlet_stop_conditions *stop, const tartlet_generation_options *options, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_generation){0};
  struct {
    tartlet_context context;
    tartlet_sampling sampling;
    tartlet_stop_conditions stop;
    tartlet_generation_options options;
  } arguments = {context, *sampling, *stop, *options};
  struct { bool is_error; union { tartlet_generation ok; tartlet_error error; }; } returned;
  import_generation_generate(ADDRESS(&arguments), ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_generation_generate", &returned.error, failure);
  return returned.is_error ? (tartlet_generation){0} : returned.ok;
}

IMPORT("tartlet:inferlet/controllers@0.1.0", "[resource-drop]controlled")
void import_controlled_drop(int32_t);

void tartlet_controlled_drop(tartlet_controlled controlled) {
  import_controlled_drop(controlled.handle);
}

IMPORT("tartlet:inferlet/controllers@0.1.0", "[method]controlled.ready")
int32_t import_controlled_ready(int32_t);

tartlet_event tartlet_controlled_ready(tartlet_controlled self) {
  return (tartlet_event)import_controlled_ready(self.handle);
}

IMPORT("tartlet:inferlet/controllers@0.1.0", "[method]controlled.read")
void import_controlled_read(int32_t, int32_t);

tartlet_controlled_chunks tartlet_controlled_read(tartlet_controlled self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_controlled_chunks){0};
  struct { bool is_error; union { tartlet_controlled_chunks ok; tartlet_error error; }; } returned;
  import_controlled_read(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_controlled_read", &returned.error, failure);
  return returned.is_error ? (tartlet_controlled_chunks){0} : returned.ok;
}

IMPORT("tartlet:inferlet/controllers@0.1.0", "[method]controlled.cancel")
void import_controlled_cancel(int32_t);

void tartlet_controlled_cancel(tartlet_controlled self) {
  import_controlled_cancel(self.handle);
}

IMPORT("tartlet:inferlet/controllers@0.1.0", "control")
void import_controllers_control(int32_t, int32_t);

tartlet_controlled tartlet_controllers_control(tartlet_context context, tartlet_string controller,
    tartlet_string config, const tartlet_sampling *sampling, const tartlet_stop_conditions *stop,
    const tartlet_generation_options *options, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_controlled){0};
  struct {
    tartlet_context context;
    tartlet_string controller;
    tartlet_string config;
    tartlet_sampling sampling;
    tartlet_stop_conditions stop;
    tartlet_generation_options options;
  } arguments = {context, controller, config, *sampling, *stop, *options};
  struct { bool is_error; union { tartlet_controlled ok; tartlet_error error; }; } returned;
  import_controllers_control(ADDRESS(&arguments), ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_controllers_control", &returned.error, failure);
  return returned.is_error ? (tartlet_controlled){0} : returned.ok;
}

IMPORT("tartlet:inferlet/forward@0.1.0", "[resource-drop]pass")
void import_pass_drop(int32_t);

void tartlet_pass_drop(tartlet_pass pass) {
  import_pass_drop(pass.handle);
}

IMPORT("tartlet:inferlet/forward@0.1.0", "[method]pass.ready")
int32_t import_pass_ready(int32_t);

tartlet_event tartlet_pass_ready(tartlet_pass self) {
  return (tartlet_event)import_pass_ready(self.handle);
}

IMPORT("tartlet:inferlet/forward@0.1.0", "[method]pass.read")
void import_pass_read(int32_t, int32_t);

tartlet_findings tartlet_pass_read(tartlet_pass self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_findings){0};
  struct { bool is_error; union { tartlet_findings ok; tartlet_error error; }; } returned;
  import_pass_read(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_pass_read", &returned.error, failure);
  return returned.is_error ? (tartlet_findings){0} : returned.ok;
}

IMPORT("tartlet:inferlet/forward@0.1.0", "[method]pass.commit")
void import_pass_commit(int32_t, int32_t, int32_t, int32_t);

void tartlet_pass_commit(tartlet_pass self, tartlet_list_u32 path, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_pass_commit(self.handle, ADDRESS(path.data), (int32_t)path.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_pass_commit", &returned.error, failure);
}

IMPORT("tartlet:inferlet/forward@0.1.0", "[method]pass.discard")
void import_pass_discard(int32_t);

void tartlet_pass_discard(tartlet_pass self) {
  import_pass_discard(self.handle);
}

IMPORT("tartlet:inferlet/forward@0.1.0", "forward")
void import_forward_forward(int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t,
    int32_t, int32_t, int32_t);

tartlet_pass tartlet_forward_forward(tartlet_context context, tartlet_list_token tokens,
    const tartlet_forward_options *options, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_pass){0};
  struct { bool is_error; union { tartlet_pass ok; tartlet_error error; }; } returned;
  import_forward_forward(context.handle, ADDRESS(tokens.data), (int32_t)tokens.length,
      (int32_t)options->parents.is_some, ADDRESS(options->parents.value.data), (int32_t)options->parents.value.length,
      (int32_t)options->positions.is_some, ADDRESS(options->positions.value.data),
      (int32_t)options->positions.value.length, (int32_t)options->log_probabilities, ADDRESS(options->requests.data),
      (int32_t)options->requests.length, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_forward_forward", &returned.error, failure);
  return returned.is_error ? (tartlet_pass){0} : returned.ok;
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[resource-drop]steps")
void import_steps_drop(int32_t);

void tartlet_steps_drop(tartlet_steps steps) {
  import_steps_drop(steps.handle);
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.next")
void import_steps_next(int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t,
    int32_t, int32_t, float, int32_t, int32_t, int32_t);

tartlet_stepping_outcome tartlet_steps_next(tartlet_steps self, const tartlet_answer *answer,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_stepping_outcome){0};
  struct { bool is_error; union { tartlet_stepping_outcome ok; tartlet_error error; }; } returned;
  import_steps_next(self.handle, (int32_t)answer->sample, (int32_t)answer->allow.is_some,
      ADDRESS(answer->allow.value.data), (int32_t)answer->allow.value.length, (int32_t)answer->mask.is_some,
      (int32_t)answer->mask.value, ADDRESS(answer->bias.data), (int32_t)answer->bias.length,
      ADDRESS(answer->boosts.data), (int32_t)answer->boosts.length, (int32_t)answer->temperature.is_some,
      (float)answer->temperature.value, ADDRESS(answer->splices.data), (int32_t)answer->splices.length,
      ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_steps_next", &returned.error, failure);
  return returned.is_error ? (tartlet_stepping_outcome){0} : returned.ok;
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.answer")
void import_steps_answer(int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t,
    int32_t, int32_t, float, int32_t, int32_t, int32_t);

void tartlet_steps_answer(tartlet_steps self, const tartlet_answer *answer, tartlet_failure *failure) {
  if (failure && failure->call) return;
  struct { bool is_error; union { tartlet_error error; }; } returned;
  import_steps_answer(self.handle, (int32_t)answer->sample, (int32_t)answer->allow.is_some,
      ADDRESS(answer->allow.value.data), (int32_t)answer->allow.value.length, (int32_t)answer->mask.is_some,
      (int32_t)answer->mask.value, ADDRESS(answer->bias.data), (int32_t)answer->bias.length,
      ADDRESS(answer->boosts.data), (int32_t)answer->boosts.length, (int32_t)answer->temperature.is_some,
      (float)answer->temperature.value, ADDRESS(answer->splices.data), (int32_t)answer->splices.length,
      ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_steps_answer", &returned.error, failure);
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.ready")
int32_t import_steps_ready(int32_t);

tartlet_event tartlet_steps_ready(tartlet_steps self) {
  return (tartlet_event)import_steps_ready(self.handle);
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.outcome")
void import_steps_outcome(int32_t, int32_t);

tartlet_stepping_outcome tartlet_steps_outcome(tartlet_steps self, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_stepping_outcome){0};
  struct { bool is_error; union { tartlet_stepping_outcome ok; tartlet_error error; }; } returned;
  import_steps_outcome(self.handle, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_steps_outcome", &returned.error, failure);
  return returned.is_error ? (tartlet_stepping_outcome){0} : returned.ok;
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.fork")
void import_steps_fork(int32_t, int32_t, int64_t, int32_t);

tartlet_tuple_context_steps tartlet_steps_fork(tartlet_steps self, tartlet_option_u64 seed, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_tuple_context_steps){0};
  struct { bool is_error; union { tartlet_tuple_context_steps ok; tartlet_error error; }; } returned;
  import_steps_fork(self.handle, (int32_t)seed.is_some, (int64_t)seed.value, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_steps_fork", &returned.error, failure);
  return returned.is_error ? (tartlet_tuple_context_steps){0} : returned.ok;
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.hold")
void import_steps_hold(int32_t);

void tartlet_steps_hold(tartlet_steps self) {
  import_steps_hold(self.handle);
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "[method]steps.stop")
void import_steps_stop(int32_t);

void tartlet_steps_stop(tartlet_steps self) {
  import_steps_stop(self.handle);
}

IMPORT("tartlet:inferlet/stepping@0.1.0", "start")
void import_stepping_start(int32_t, int32_t);

tartlet_steps tartlet_stepping_start(tartlet_context context, const tartlet_sampling *sampling,
    const tartlet_stop_conditions *stop, const tartlet_stepping_options *options, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_steps){0};
  struct {
    tartlet_context context;
    tartlet_sampling sampling;
    tartlet_stop_conditions stop;
    tartlet_stepping_options options;
  } arguments = {context, *sampling, *stop, *options};
  struct { bool is_error; union { tartlet_steps ok; tartlet_error error; }; } returned;
  import_stepping_start(ADDRESS(&arguments), ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_stepping_start", &returned.error, failure);
  return returned.is_error ? (tartlet_steps){0} : returned.ok;
}

IMPORT("tartlet:inferlet/store@0.1.0", "get-variable")
void import_store_get_variable(int32_t, int32_t, int32_t);

tartlet_option_variable tartlet_store_get_variable(tartlet_string name) {
  tartlet_option_variable returned;
  import_store_get_variable(ADDRESS(name.data), (int32_t)name.length, ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/store@0.1.0", "set-variable")
void import_store_set_variable(int32_t, int32_t, int32_t, int32_t, int32_t);

uint64_t tartlet_store_set_variable(tartlet_string name, tartlet_string value, tartlet_failure *failure) {
  if (failure && failure->call) return (uint64_t){0};
  struct { bool is_error; union { uint64_t ok; tartlet_error error; }; } returned;
  import_store_set_variable(ADDRESS(name.data), (int32_t)name.length, ADDRESS(value.data), (int32_t)value.length,
      ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_store_set_variable", &returned.error, failure);
  return returned.is_error ? (uint64_t){0} : returned.ok;
}

IMPORT("tartlet:inferlet/store@0.1.0", "append-variable")
void import_store_append_variable(int32_t, int32_t, int32_t, int32_t, int32_t);

uint64_t tartlet_store_append_variable(tartlet_string name, tartlet_string value, tartlet_failure *failure) {
  if (failure && failure->call) return (uint64_t){0};
  struct { bool is_error; union { uint64_t ok; tartlet_error error; }; } returned;
  import_store_append_variable(ADDRESS(name.data), (int32_t)name.length, ADDRESS(value.data), (int32_t)value.length,
      ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_store_append_variable", &returned.error, failure);
  return returned.is_error ? (uint64_t){0} : returned.ok;
}

IMPORT("tartlet:inferlet/store@0.1.0", "compare-and-swap-variable")
void import_store_compare_and_swap_variable(int32_t, int32_t, int32_t, int32_t, int64_t, int32_t);

tartlet_swap tartlet_store_compare_and_swap_variable(tartlet_string name, tartlet_string value, uint64_t version,
    tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_swap){0};
  struct { bool is_error; union { tartlet_swap ok; tartlet_error error; }; } returned;
  import_store_compare_and_swap_variable(ADDRESS(name.data), (int32_t)name.length, ADDRESS(value.data),
      (int32_t)value.length, (int64_t)version, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_store_compare_and_swap_variable", &returned.error, failure);
  return returned.is_error ? (tartlet_swap){0} : returned.ok;
}

IMPORT("tartlet:inferlet/store@0.1.0", "list-variables")
void import_store_list_variables(int32_t);

tartlet_list_variable_version tartlet_store_list_variables(void) {
  tartlet_list_variable_version returned;
  import_store_list_variables(ADDRESS(&returned));
  return returned;
}

IMPORT("tartlet:inferlet/store@0.1.0", "variable-above")
void import_store_variable_above(int32_t, int32_t, int64_t, int32_t);

tartlet_event tartlet_store_variable_above(tartlet_string name, uint64_t version, tartlet_failure *failure) {
  if (failure && failure->call) return (tartlet_event){0};
  struct { bool is_error; union { tartlet_event ok; tartlet_error error; }; } returned;
  import_store_variable_above(ADDRESS(name.data), (int32_t)name.length, (int64_t)version, ADDRESS(&returned));
  if (returned.is_error) tartlet_refused("tartlet_store_variable_above", &returned.error, failure);
  return returned.is_error ? (tartlet_event){0} : returned.ok;
}

#ifndef TARTLET_CONTROLLER
__attribute__((export_name("run")))
const void *exported_run(int32_t input_data, int32_t input_length) {
  static tartlet_result_string_string returned;
  static tartlet_string input;
  tartlet_begin_call();
  tartlet_string_free(&input);
  input = (tartlet_string){POINTER(input_data), (size_t)input_length};
  returned = run(input);
  tartlet_end_call();
  return &returned;
}

#endif

#ifdef TARTLET_CONTROLLER
__attribute__((export_name("start")))
const void *exported_start(int32_t config_data, int32_t config_length, int32_t prompt_data, int32_t prompt_length) {
  static tartlet_result_start_answer_string returned;
  static tartlet_string config;
  static tartlet_list_token prompt;
  tartlet_begin_call();
  tartlet_string_free(&config);
  config = (tartlet_string){POINTER(config_data), (size_t)config_length};
  tartlet_list_token_free(&prompt);
  prompt = (tartlet_list_token){POINTER(prompt_data), (size_t)prompt_length};
  returned = start(config, prompt);
  tartlet_end_call();
  return &returned;
}

__attribute__((export_name("step")))
const void *exported_step(int32_t outcomes_data, int32_t outcomes_length) {
  static tartlet_result_list_decision_string returned;
  static tartlet_list_steering_outcome outcomes;
  tartlet_begin_call();
  tartlet_list_steering_outcome_free(&outcomes);
  outcomes = (tartlet_list_steering_outcome){POINTER(outcomes_data), (size_t)outcomes_length};
  returned = step(outcomes);
  tartlet_end_call();
  return &returned;
}

#endif
