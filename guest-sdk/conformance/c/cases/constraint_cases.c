/* Constraints. On the tiny model they are what llguidance says; its weights do not matter. */

#include "constrained.h"

/* What a generation under the constraint writes, which leaves no choice. */
static void say_generated(const char *label, tartlet_constraint constraint) {
  tartlet_draft draft = constrained(filled("Once"), constraint, 60);
  SAY(label, str(draft.text), cstr(finish_name(draft.finish.reason)));
}

static void schema_case(void) {
  say_generated("forced", json_schema("{\"const\": {\"a\": [1, true], \"b\": null}}"));
  ATTEMPT("not JSON", json_schema("{"));
  ATTEMPT("no such type", json_schema("{\"type\": \"tart\"}"));
}

static void regex_case(void) {
  say_generated("forced", regex("The [q]uick é😀"));
  ATTEMPT("not closed", regex("("));
  ATTEMPT("empty", constrained(filled("x"), regex(""), 1));
}

static void lark_case(void) {
  say_generated("forced", lark("start: \"one\" \" \" two\ntwo: \"two\""));
  ATTEMPT("no start", lark("other: \"x\""));
}

static void choices_case(void) {
  say_generated("forced", CHOICES("only this one"));
  ATTEMPT("none", choices(NULL, 0));
  ATTEMPT("an empty one", constrained(filled("x"), CHOICES(""), 1));
}

static void substring(void) {
  tartlet_constraint constraint =
      tartlet_compiled(tartlet_constraint_substring(model(), T("one two three"), NULL), NULL);
  tartlet_matcher matcher = tartlet_matcher_begin(constraint, NULL);
  tartlet_matcher_arrive(matcher, NULL);
  tartlet_matcher_advance(matcher, tartlet_model_tokenize(model(), T("two th"), NULL), NULL);
  tartlet_place place = tartlet_matcher_arrive(matcher, NULL);
  SAY("forced", str(tartlet_model_detokenize(model(), place.forced, NULL)), flag(place.may_end));
  tartlet_matcher_advance(matcher, place.forced, NULL);
  place = tartlet_matcher_arrive(matcher, NULL);
  SAY("complete", flag(place.may_end), flag(place.is_complete));
}

static void say_tokens(const char *label, tartlet_draft draft) {
  SAY(label, nums(draft.tokens), cstr(finish_name(draft.finish.reason)));
}

static void tokens(void) {
  say_tokens("only these", constrained(filled("Once"), tokens_only(TOKENS(65)), 4));
  ATTEMPT("none", constrained(filled("x"), tokens_only((tartlet_list_token){0}), 2));
  ATTEMPT("out of range", tokens_only(TOKENS(UINT32_MAX)));
}

static tartlet_constraint of_mask(tartlet_list_token tokens) {
  return tartlet_compiled(tartlet_constraint_of_mask(tartlet_mask_tokens(model(), tokens, NULL), &f), &f);
}

static void of_mask_case(void) {
  say_tokens("only these", constrained(filled("Once"), of_mask(TOKENS(66)), 4));
  ATTEMPT("an empty mask", of_mask((tartlet_list_token){0}));
}

static void all_of_case(void) {
  tartlet_constraint three[] = {regex("[a-c]+d"), regex("[b-z]+"), CHOICES("abd", "bbd")};
  say_generated("all three", all_of(three, 3));
  tartlet_constraint nothing[] = {regex("a"), regex("b")}, nine[9];
  ATTEMPT("nothing", constrained(filled("x"), all_of(nothing, 2), 4));
  for (int i = 0; i < 9; i++) nine[i] = regex(tartlet_format("a%d", i).data);
  ATTEMPT("nine", all_of(nine, 9));
}

static tartlet_string allows_texts(tartlet_matcher matcher, const char *const *texts, size_t number) {
  tartlet_mask mask = tartlet_matcher_mask(matcher, NULL);
  tartlet_string flags[8];
  for (size_t i = 0; i < number; i++) {
    tartlet_token token = tartlet_model_tokenize(model(), T(texts[i]), NULL).data[0];
    flags[i] = flag(tartlet_mask_allows(mask, token, NULL));
  }
  return list(flags, number);
}

static void any_of_case(void) {
  tartlet_constraint both[] = {CHOICES("one"), CHOICES("two")};
  tartlet_matcher matcher = tartlet_matcher_begin(any_of(both, 2), NULL);
  tartlet_matcher_arrive(matcher, NULL);
  SAY("allowed", allows_texts(matcher, (const char *[]){"o", "t", "x"}, 3));
  tartlet_matcher_advance(matcher, tartlet_model_tokenize(model(), T("t"), NULL), NULL);
  SAY("forced", str(tartlet_model_detokenize(model(), tartlet_matcher_arrive(matcher, NULL).forced, NULL)));
}

static void ready(void) {
  tartlet_constraint constraint = tartlet_constraint_regex(model(), T("a+"), NULL);
  tartlet_event event = tartlet_constraint_ready(constraint);
  SAY("the same at every call", flag(tartlet_constraint_ready(constraint) == event));
  SAY("ready", flag(is_ready(event)));
  ATTEMPT("outcome", tartlet_events_outcome(event, &f));
  ATTEMPT("an error", tartlet_wait(tartlet_constraint_ready(tartlet_constraint_regex(model(), T("("), NULL)), &f));
}

static tartlet_constraint one_choice(const char *text) {
  tartlet_string choice = T(text);
  return tartlet_constraint_choices(model(), (tartlet_list_string){&choice, 1}, NULL);
}

static void id(void) {
  tartlet_constraint constraint = one_choice("only this"), other = one_choice("another");
  SAY("their own", flag(tartlet_constraint_id(constraint) != tartlet_constraint_id(other)));
  SAY("the same at every call", flag(tartlet_constraint_id(constraint) == tartlet_constraint_id(constraint)));
  ATTEMPT("not compiled yet", tartlet_constraint_all_of(IDS(tartlet_constraint_id(constraint)), &f));
  tartlet_wait_ready(tartlet_constraint_ready(constraint));
  tartlet_constraint alone = tartlet_constraint_all_of(IDS(tartlet_constraint_id(constraint)), NULL);
  ATTEMPT("of one part", tartlet_compiled(alone, &f));
  ATTEMPT("of no part", tartlet_constraint_any_of((tartlet_list_u32){0}, &f));
}

const test_case constraint_cases[] = {
    {"constraints.constraint.json-schema", schema_case},
    {"constraints.constraint.regex", regex_case},
    {"constraints.constraint.lark", lark_case},
    {"constraints.constraint.choices", choices_case},
    {"constraints.constraint.substring", substring},
    {"constraints.constraint.tokens", tokens},
    {"constraints.constraint.of-mask", of_mask_case},
    {"constraints.constraint.all-of", all_of_case},
    {"constraints.constraint.any-of", any_of_case},
    {"constraints.constraint.ready", ready},
    {"constraints.constraint.id", id},
    {0},
};
