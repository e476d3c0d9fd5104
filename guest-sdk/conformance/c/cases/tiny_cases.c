/* On models that compute: numbers differ between processors, so this is held to what the program in Python tells. */

#include "constrained.h"
#include "passes.h"
#include "stepping.h"

#define PROMPT "The cat sat on the mat. The cat sat on the"

static void greedy(void) {
  tartlet_generation_options options = {.log_probabilities = {true, 2}};
  tartlet_draft draft =
      tartlet_generate_with(filled(PROMPT), tartlet_greedy(), tartlet_max_tokens(24), options, NULL);
  SAY("tokens", nums(draft.tokens), str(draft.text));
  for (size_t i = 0; i < 4 && i < draft.log_probabilities.length; i++) {
    tartlet_position_log_probabilities each = draft.log_probabilities.data[i];
    tartlet_string likely[2] = {num(each.top.data[0].token), num(each.top.data[1].token)};
    SAY("log-probabilities", real(each.chosen.log_probability), list(likely, each.top.length));
  }
}

static void samplers(void) {
  tartlet_context context = filled(PROMPT);
  tartlet_tuple_token_f32 bias = {5, 100};
  tartlet_sampling all[7] = {
      tartlet_seeded(tartlet_temperature(1.3f), 0),
      tartlet_seeded(tartlet_top_p(0.8f, 0.95f), MOST),
      tartlet_seeded(tartlet_top_k(40, 0.7f), 9007199254740993),
      tartlet_seeded(tartlet_min_p(0.05f, 1.1f), 3),
      tartlet_seeded(tartlet_temperature(1), 5),
      tartlet_greedy(),
      tartlet_temperature(1),
  };
  all[4].repetition_penalty = 1.3f, all[4].presence_penalty = 0.4f, all[4].frequency_penalty = 0.1f;
  all[5].logit_bias = (tartlet_list_tuple_token_f32){&bias, 1};
  tartlet_stop_conditions stop = tartlet_max_tokens(16);
  tartlet_generation started[7];
  for (int i = 0; i < 7; i++)
    started[i] = tartlet_generation_generate(tartlet_context_fork(context, NULL), &all[i], &stop, &PLAIN, NULL);
  for (int i = 0; i < 7; i++) SAY("tokens", nums(tartlet_finish_generation(started[i], NULL).tokens));
}

static tartlet_token first_token(const char *text) { return tartlet_model_tokenize(model(), T(text), NULL).data[0]; }

static void forward(void) {
  tartlet_context context = filled(PROMPT);
  tartlet_token a = first_token("abc"), b = first_token(" dog"), c = first_token(" roof");
  tartlet_request asked[4];
  for (uint32_t row = 0; row < 4; row++)
    asked[row] = (tartlet_request){.row = row, .top = 3, .given = {&b, 1}, .entropy = true};
  tartlet_forward_options options = {
      .parents = {true, IDS(0, 0, 2)}, .log_probabilities = true, .requests = {asked, 4}};
  tartlet_findings found;
  tartlet_pass pass = compute(context, TOKENS(a, b, c), options, &found);
  SAY("log-probabilities", reals(found.log_probabilities));
  for (size_t i = 0; i < 4; i++) {
    tartlet_row row = found.rows.data[i];
    tartlet_string tokens[3], numbers[3];
    for (size_t k = 0; k < 3; k++) tokens[k] = num(row.top.data[k].token), numbers[k] = real(row.top.data[k].log_probability);
    SAY("row", list(tokens, 3), list(numbers, 3), reals(row.given), real(row.entropy.value));
  }
  tartlet_pass_commit(pass, IDS(2, 3), NULL);
  SAY("length", num(tartlet_context_length(context)));
  tartlet_request two[] = {{.logits = true},
                           {.row = 1, .sampling = {true, tartlet_seeded(tartlet_temperature(1), 11)}}};
  found = look(context, TOKENS(a), (tartlet_forward_options){.requests = {two, 2}});
  size_t number = tartlet_model_info(model()).vocabulary_size;
  SAY("logits", num(number), first_logits(found.rows.data[0], 0, 3), first_logits(found.rows.data[0], number - 3, 3));
  tartlet_generation_token_log_probability sampled = found.rows.data[1].sampled.value;
  SAY("sampled", num(sampled.token), real(sampled.log_probability));
  SAY("scores", scores(context, (const char *[]){" the cat", " a dog", " the cow"}, 3));
}

static void stepping(void) {
  tartlet_stepping_options options = {.constraint = {true, tartlet_constraint_id(regex("[ -~]{1,60}"))}};
  walk steps = begin_steps(filled(PROMPT), tartlet_seeded(tartlet_temperature(0.9f), 17), tartlet_max_tokens(20), options);
  for (int i = 0; i < 5; i++) step(&steps);
  walk child = fork_steps(&steps, (tartlet_option_u64){true, 23});
  tartlet_stepping_splice splice = {.backtrack = 1, .tokens = tartlet_model_tokenize(model(), T(" and"), NULL)};
  step_with(&child, (tartlet_answer){.sample = true, .splices = {&splice, 1}});
  tartlet_tuple_token_f32 bias = {10, 3};
  step_with(&child, (tartlet_answer){.sample = true, .bias = {&bias, 1}});
  replace(&steps, 2, (tartlet_list_token){0});
  step_with(&steps, (tartlet_answer){.sample = true, .temperature = {true, 0}});
  SAY("tokens", nums(steps.tokens), nums(child.tokens));
  stop_steps(&child);
}

static void say_constrained(tartlet_draft draft) {
  SAY("draft", str(draft.text), nums(draft.tokens), cstr(finish_name(draft.finish.reason)),
      num(draft.finish.usage.forced_tokens));
}

static void constraints(void) {
  tartlet_context context = filled(PROMPT);
  const char *schema =
      "{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 99}}, "
      "\"required\": [\"n\"]}";
  tartlet_constraint both[] = {regex("[a-m]{2,5}"), regex("[c-z]+")};
  tartlet_constraint either[] = {all_of(both, 2), CHOICES("zzz")};
  say_constrained(constrained(tartlet_context_fork(context, NULL), json_schema(schema), 40));
  say_constrained(constrained(tartlet_context_fork(context, NULL), any_of(either, 2), 8));
  say_constrained(constrained_with(tartlet_context_fork(context, NULL), CHOICES("one", "two", "three"),
                                   (tartlet_option_u32){0}, NO_STOP, tartlet_seeded(tartlet_temperature(1), 2)));
}

static void speculation(void) {
  tartlet_context context = filled(PROMPT);
  tartlet_draft plain = generate_some(tartlet_context_fork(context, NULL), 16);
  tartlet_list_token expected = tartlet_model_tokenize(model(), T(PROMPT), NULL);
  tartlet_generation_options options = {.speculation = {true, {.max_draft = 8, .ngram = 3, .expected = expected}}};
  tartlet_draft guessed = tartlet_generate_with(tartlet_context_fork(context, NULL), tartlet_greedy(),
                                                tartlet_max_tokens(16), options, NULL);
  SAY("the same", flag(guessed.tokens.length == plain.tokens.length &&
                       !memcmp(guessed.tokens.data, plain.tokens.data, plain.tokens.length * sizeof(tartlet_token))));
  SAY("tokens", nums(guessed.tokens));
}

static void eviction(void) {
  tartlet_context context = filled(PROMPT);
  tartlet_evict(context, 2, 5, NULL);
  tartlet_draft draft = generate_some(context, 12);
  SAY("tokens", nums(draft.tokens), num(tartlet_context_length(context)), num(tartlet_context_positions(context)));
  tartlet_save(context, "evicted", (tartlet_save_options){.overwrite = true}, NULL);
  tartlet_draft again = generate_some(context, 6);
  tartlet_draft opened = generate_some(tartlet_open_saved(model(), "evicted", NULL), 6);
  SAY("goes on", nums(again.tokens));
  SAY("the same", flag(again.tokens.length == opened.tokens.length &&
                       !memcmp(again.tokens.data, opened.tokens.data, again.tokens.length * sizeof(tartlet_token))));
}

const test_case tiny_cases[] = {
    {"model.greedy", greedy},
    {"model.samplers", samplers},
    {"model.forward", forward},
    {"model.stepping", stepping},
    {"model.constraints", constraints},
    {"model.speculation", speculation},
    {"model.eviction", eviction},
    {0},
};
