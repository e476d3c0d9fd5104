/* Matchers: ways through a constraint that the program goes by itself. */

#include "constrained.h"

static tartlet_matcher begin(tartlet_constraint constraint) {
  tartlet_matcher matcher = tartlet_matcher_begin(constraint, &f);
  tartlet_matcher_arrive(matcher, &f);
  return matcher;
}

static tartlet_place place_of(tartlet_matcher matcher) { return tartlet_matcher_place(matcher, NULL); }

static void advance_by(tartlet_matcher matcher, tartlet_list_token tokens) {
  tartlet_matcher_advance(matcher, tokens, &f);
  tartlet_matcher_arrive(matcher, &f);
}

static void advance_text(tartlet_matcher matcher, const char *text) {
  advance_by(matcher, tartlet_model_tokenize(model(), T(text), &f));
}

static void back(tartlet_matcher matcher, uint32_t number) {
  tartlet_matcher_rollback(matcher, number, &f);
  tartlet_matcher_arrive(matcher, &f);
}

static tartlet_string forced(tartlet_matcher matcher) {
  return str(tartlet_model_detokenize(model(), place_of(matcher).forced, NULL));
}

static bool allows(tartlet_matcher matcher, tartlet_token token) {
  tartlet_mask mask = tartlet_matcher_mask(matcher, NULL);
  bool is_allowed = tartlet_mask_allows(mask, token, NULL);
  tartlet_mask_drop(mask);
  return is_allowed;
}

static bool allows_text(tartlet_matcher matcher, const char *text) {
  return allows(matcher, tartlet_model_tokenize(model(), T(text), NULL).data[0]);
}

static bool has_problem(tartlet_matcher matcher) { return place_of(matcher).problem.is_some; }

static void begin_case(void) {
  tartlet_matcher matcher = begin(regex("The (quick|slow) fox"));
  tartlet_place place = place_of(matcher);
  SAY("forced", forced(matcher));
  SAY("place", flag(place.may_end), flag(place.is_complete), option_str(place.problem));
  ATTEMPT("a constraint with an error", begin(regex("(")));
}

static void ready(void) {
  tartlet_constraint constraint = tartlet_constraint_regex(model(), T("ab"), NULL);
  ATTEMPT("not compiled yet", tartlet_matcher_begin(constraint, &f));
  tartlet_wait_ready(tartlet_constraint_ready(constraint));
  tartlet_matcher matcher = tartlet_matcher_begin(constraint, NULL);
  tartlet_event event = tartlet_matcher_ready(matcher);
  SAY("the same at every call", flag(tartlet_matcher_ready(matcher) == event));
  ATTEMPT_VALUE("too early", flag(tartlet_matcher_place(matcher, &f).may_end));
  SAY("ready", flag(is_ready(event)));
  ATTEMPT_VALUE("then", flag(tartlet_matcher_place(matcher, &f).may_end));
}

static void say_place(const char *label, tartlet_place place) {
  SAY(label, nums(place.forced), flag(place.may_end), flag(place.is_complete), option_str(place.problem));
}

static void place(void) {
  tartlet_matcher matcher = begin(regex("ab?"));
  say_place("beginning", place_of(matcher));
  advance_text(matcher, "a");
  say_place("may end", place_of(matcher));
  advance_text(matcher, "b");
  say_place("complete", place_of(matcher));
  advance_text(matcher, "c");
  SAY("a problem", flag(has_problem(matcher)), flag(place_of(matcher).may_end));
}

static void mask(void) {
  tartlet_matcher matcher = begin(CHOICES("x", "y"));
  SAY("two", flag(allows_text(matcher, "x")), flag(allows_text(matcher, "z")));
  advance_text(matcher, "x");
  tartlet_list_token eos = tartlet_model_info(model()).eos_tokens;
  tartlet_string flags[8];
  for (size_t i = 0; i < eos.length; i++) flags[i] = flag(allows(matcher, eos.data[i]));
  SAY("the end", list(flags, eos.length));
}

static void advance(void) {
  tartlet_matcher matcher = begin(regex("[ab]*"));
  ATTEMPT("none", advance_by(matcher, (tartlet_list_token){0}));
  tartlet_list_token ab = tartlet_model_tokenize(model(), T("ab"), NULL), many = same_token(0, 20 * ab.length);
  for (size_t i = 0; i < many.length; i++) many.data[i] = ab.data[i % ab.length];
  ATTEMPT("many", advance_by(matcher, many));
  SAY("place", flag(place_of(matcher).may_end), option_str(place_of(matcher).problem));
  ATTEMPT("what is not allowed", advance_text(matcher, "z"));
  SAY("a problem", flag(has_problem(matcher)));
  ATTEMPT("out of range", advance_by(matcher, TOKENS(UINT32_MAX)));
}

static void rollback(void) {
  tartlet_matcher matcher = begin(regex("abc"));
  advance_text(matcher, "a");
  advance_text(matcher, "z");
  SAY("a problem", flag(has_problem(matcher)));
  ATTEMPT("one back", back(matcher, 1));
  SAY("no problem", option_str(place_of(matcher).problem), forced(matcher));
  ATTEMPT("too many", back(matcher, 2));
  ATTEMPT("far too many", back(matcher, UINT32_MAX));
  ATTEMPT("none", back(matcher, 0));
  SAY("where it was", forced(matcher));
}

static void fork_case(void) {
  tartlet_matcher matcher = begin(CHOICES("ab", "cd")), fork = tartlet_matcher_fork(matcher, NULL);
  tartlet_matcher_arrive(fork, NULL);
  advance_text(fork, "a");
  advance_text(matcher, "c");
  SAY("their own ways", forced(fork), forced(matcher));
  back(fork, 1);
  SAY("back", flag(allows_text(fork, "c")));
}

const test_case matcher_cases[] = {
    {"constraints.matcher.begin", begin_case},
    {"constraints.matcher.ready", ready},
    {"constraints.matcher.place", place},
    {"constraints.matcher.mask", mask},
    {"constraints.matcher.advance", advance},
    {"constraints.matcher.rollback", rollback},
    {"constraints.matcher.fork", fork_case},
    {0},
};
