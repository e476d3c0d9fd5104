/* Stepping: the program has the say before each token. The fake engine's reply is the context's text. */

#include "stepping.h"

static const tartlet_stepping_options PLAIN_STEPS = {0};

static walk plain(const char *text) { return begin_steps(filled(text), tartlet_greedy(), NO_STOP, PLAIN_STEPS); }

/* All of an outcome; of one that was refused, the error is told already. */
static void say_outcome(const char *label, tartlet_stepping_outcome outcome) {
  SAY(label, nums(outcome.tokens), str(outcome.text), option_num(outcome.sampled.is_some, outcome.sampled.value),
      num(outcome.backtrack), num(outcome.text_backtrack));
  if (outcome.finish.is_some) SAY("finish", cstr(finish_name(outcome.finish.value.reason)));
}

static void start(void) {
  tartlet_context context = filled("abc");
  walk steps = begin_steps(context, tartlet_greedy(), tartlet_max_tokens(2),
                           (tartlet_stepping_options){.log_probabilities = {true, 2}});
  tartlet_stepping_outcome outcome = step(&steps);
  say_outcome("first", outcome);
  tartlet_position_log_probabilities found = outcome.log_probabilities.value;
  SAY("log-probabilities", num(found.chosen.token), real(found.chosen.log_probability), num(found.top.length));
  ATTEMPT("busy", tartlet_fill(context, "x", &f));
  outcome = step(&steps);
  say_outcome("second", outcome);
  SAY("usage", num(outcome.finish.value.usage.prompt_tokens), num(outcome.finish.value.usage.generated_tokens));
  step(&steps);
  SAY("after the end", cstr(tartlet_error_code_name(f.error.code)));
  tartlet_failure_clear(&f);
  stop_steps(&steps);
  SAY("context", nums(tartlet_context_tokens(context)));
  tartlet_sampling greedy = tartlet_greedy();
  ATTEMPT("an empty context", tartlet_stepping_start(filled(""), &greedy, &NO_STOP, &PLAIN_STEPS, &f));
}

static void next(void) {
  walk steps = plain("abcdef");
  say_outcome("plain", step(&steps));
  say_outcome("allowed", step_with(&steps, (tartlet_answer){.sample = true, .allow = {true, TOKENS(120, 121)}}));
  uint32_t all = tartlet_mask_id(tartlet_mask_all(model(), NULL));
  say_outcome("in a mask", step_with(&steps, (tartlet_answer){.sample = true, .mask = {true, all}}));
  tartlet_tuple_token_f32 bias[] = {{65, -1.5f}, {66, 2}};
  tartlet_tuple_u32_f32 boost = {tartlet_mask_id(tartlet_mask_tokens(model(), TOKENS(67), NULL)), 0.5f};
  say_outcome("biased", step_with(&steps, (tartlet_answer){.sample = true, .bias = {bias, 2}, .boosts = {&boost, 1},
                                                           .temperature = {true, 0.5f}}));
  SAY("text", str(steps.text), nums(steps.tokens));
  stop_steps(&steps);
  SAY("context", nums(tartlet_context_tokens(steps.context)));
}

static void refused(void) {
  walk steps = plain("abcdef");
  say_outcome("first", step(&steps));
  ATTEMPT("too far back", replace(&steps, 8, (tartlet_list_token){0}));
  say_outcome("goes on", step(&steps));
  SAY("text", str(steps.text));
  stop_steps(&steps);
}

static tartlet_stepping_outcome spliced(walk *steps, const tartlet_stepping_splice *splices, size_t number) {
  return step_with(steps, (tartlet_answer){.sample = true, .splices = {(tartlet_stepping_splice *)splices, number}});
}

static void splices(void) {
  walk steps = plain("abcdef");
  tartlet_stepping_splice two[] = {{TOKENS(98), 1, TOKENS(89)}, {TOKENS(97), 1, TOKENS(88)}};
  tartlet_stepping_splice add = {.tokens = TOKENS(49, 50)}, before = {.backtrack = 2, .tokens = TOKENS(90)};
  say_outcome("replaced", spliced(&steps, two, 2));
  say_outcome("kept", spliced(&steps, &two[1], 1));
  say_outcome("added", spliced(&steps, &add, 1));
  say_outcome("and one before it", spliced(&steps, &before, 1));
  SAY("text", str(steps.text));
  say_outcome("forced", force(&steps, "é😀"));
  say_outcome("forced tokens", replace(&steps, 0, TOKENS(226, 130)));
  say_outcome("the rest of a character", replace(&steps, 0, TOKENS(172)));
  say_outcome("taken back", replace(&steps, 4, TOKENS('!')));
  say_outcome("into the prompt", replace(&steps, (uint32_t)steps.tokens.length + 2, TOKENS('z', 'z')));
  say_outcome("nothing", replace(&steps, 0, (tartlet_list_token){0}));
  SAY("text", str(steps.text));
  stop_steps(&steps);
  SAY("context", nums(tartlet_context_tokens(steps.context)));
}

static void stop_in_steps(void) {
  tartlet_string two = T("two");
  walk steps = begin_steps(filled("one two three"), tartlet_greedy(), (tartlet_stop_conditions){.strings = {&two, 1}},
                           PLAIN_STEPS);
  while (!steps.has_finished) step(&steps);
  SAY("text", str(steps.text), cstr(finish_name(steps.reason)), num(steps.tokens.length));
}

static void answer(void) {
  tartlet_steps steps = plain("abc").handle;
  tartlet_answer sample = tartlet_sample();
  ATTEMPT("first", tartlet_steps_answer(steps, &sample, &f));
  ATTEMPT("before its outcome", tartlet_steps_answer(steps, &sample, &f));
  tartlet_wait_ready(tartlet_steps_ready(steps));
  ATTEMPT_VALUE("outcome", num(tartlet_steps_outcome(steps, &f).sampled.value));
  tartlet_tuple_token_f32 bias = {98, 1.5f};
  tartlet_stepping_splice some[] = {{TOKENS(98), 1, TOKENS(120)}, {0}};
  tartlet_answer everything = {.sample = true, .allow = {true, TOKENS(98, 99)}, .bias = {&bias, 1},
                               .temperature = {true, 0.25f}, .splices = {some, 2}};
  ATTEMPT("all of it", tartlet_steps_answer(steps, &everything, &f));
  tartlet_wait_ready(tartlet_steps_ready(steps));
  tartlet_stepping_outcome outcome = tartlet_steps_outcome(steps, NULL);
  SAY("outcome", num(outcome.backtrack), nums(outcome.tokens), option_num(outcome.sampled.is_some, outcome.sampled.value),
      str(outcome.text));
  SAY("optional", flag(!outcome.log_probabilities.is_some), flag(!outcome.finish.is_some));
}

static void ready(void) {
  tartlet_steps steps = plain("abc").handle;
  tartlet_answer sample = tartlet_sample();
  tartlet_event event = tartlet_steps_ready(steps);
  SAY("the same at every call", flag(tartlet_steps_ready(steps) == event));
  SAY("nothing yet", tartlet_wait_any(&event, 1, 0) == 1 ? T("[]") : T("?"));
  tartlet_steps_answer(steps, &sample, NULL);
  SAY("ready", flag(is_ready(event)));
  tartlet_steps_outcome(steps, NULL);
  SAY("read", tartlet_wait_any(&event, 1, 0) == 1 ? T("[]") : T("?"));
}

static void outcome(void) {
  tartlet_steps steps = plain("abc").handle;
  tartlet_answer sample = tartlet_sample();
  ATTEMPT("before any answer", tartlet_steps_outcome(steps, &f));
  tartlet_steps_answer(steps, &sample, NULL);
  tartlet_wait_ready(tartlet_steps_ready(steps));
  ATTEMPT_VALUE("once", num(tartlet_steps_outcome(steps, &f).sampled.value));
  ATTEMPT("twice", tartlet_steps_outcome(steps, &f));
}

static void fork_case(void) {
  walk steps = plain("abcdef");
  step(&steps);
  walk child = fork_steps(&steps, (tartlet_option_u64){true, MOST});
  say_outcome("the child", force(&child, "X"));
  say_outcome("the parent", step(&steps));
  say_outcome("the child again", step(&child));
  walk grandchild = fork_steps(&child, (tartlet_option_u64){0});
  say_outcome("its child", step(&grandchild));
  SAY("texts", str(steps.text), str(child.text), str(grandchild.text));
  stop_steps(&child);
  SAY("the child's context", nums(tartlet_context_tokens(child.context)));
  ATTEMPT("is free", tartlet_fill(child.context, "!", &f));
  stop_steps(&grandchild);
}

static void many_branches(void) {
  walk steps = plain("0123456789"), branches[20];
  tartlet_string texts[20];
  step(&steps);
  for (uint64_t i = 0; i < 20; i++) {
    branches[i] = fork_steps(&steps, (tartlet_option_u64){true, i});
    force(&branches[i], (char[]){(char)('A' + i), 0});
  }
  for (int i = 0; i < 20; i++) {
    while (branches[i].tokens.length < 6) step(&branches[i]);
    texts[i] = str(branches[i].text);
    stop_steps(&branches[i]);
  }
  SAY("texts", list(texts, 20));
}

static void hold(void) {
  tartlet_steps steps = plain("abc").handle;
  tartlet_answer sample = tartlet_sample();
  tartlet_steps_hold(steps);
  tartlet_sleep(0.001);
  ATTEMPT_VALUE("goes on", num(tartlet_steps_next(steps, &sample, &f).sampled.value));
  tartlet_steps_hold(steps);
  tartlet_steps_stop(steps);
  tartlet_steps_hold(steps);
  SAY("held after the end", flag(true));
}

static void stop(void) {
  walk steps = plain("abc");
  tartlet_answer sample = tartlet_sample();
  step(&steps);
  ATTEMPT("busy", tartlet_fill(steps.context, "x", &f));
  tartlet_steps_stop(steps.handle);
  tartlet_steps_stop(steps.handle);
  ATTEMPT("over", tartlet_steps_answer(steps.handle, &sample, &f));
  ATTEMPT("free", tartlet_fill(steps.context, "x", &f));
  SAY("length", num(tartlet_context_length(steps.context)));
}

static void late(void) {
  walk steps = plain("abcdef");
  step(&steps);
  tartlet_sleep(0.3);
  ATTEMPT("too late", step(&steps));
  stop_steps(&steps);
  walk held = plain("abcdef");
  step(&held);
  tartlet_steps_hold(held.handle);
  tartlet_sleep(0.3);
  say_outcome("held", step(&held));
}

const test_case stepping_cases[] = {
    {"stepping.start", start},
    {"stepping.steps.next", next},
    {"stepping.refused", refused},
    {"stepping.splices", splices},
    {"stepping.stop-strings", stop_in_steps},
    {"stepping.steps.answer", answer},
    {"stepping.steps.ready", ready},
    {"stepping.steps.outcome", outcome},
    {"stepping.steps.fork", fork_case},
    {"stepping.many-branches", many_branches},
    {"stepping.steps.hold", hold},
    {"stepping.steps.stop", stop},
    {"stepping.late", late},
    {0},
};
