/* The controller of the suite: its config says what it does. Texts are those of the fake engine's bytes. */

#define TARTLET_CONTROLLER
#include <string.h>

#include "tartlet.h"

enum { MOST_SEQUENCES = 8 };

static char does[32];
static unsigned num_calls[MOST_SEQUENCES];
static size_t num_generated[MOST_SEQUENCES];
static uint32_t num_sequences = 1;

static bool is(const char *name) { return strcmp(does, name) == 0; }

tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt) {
  tartlet_start_answer answer = {.log_probabilities = {true, 1}};
  strncpy(does, tartlet_json_text(config, "do", "").data, sizeof does - 1);
  tartlet_log(TARTLET_LEVEL_INFO, "start %s, %zu tokens", does, prompt.length);
  if (is("fail-at-start"))
    return (tartlet_result_start_answer_string){.is_error = true, .error = tartlet_text("the reason is seven é")};
  if (is("prompt")) {
    tartlet_model model = tartlet_default_model(NULL);
    answer.prompt.is_some = true;
    answer.prompt.value = tartlet_model_tokenize(model, tartlet_text("new prompt é"), NULL);
  }
  return (tartlet_result_start_answer_string){.ok = answer};
}

/* ---- Decisions. What they are made of is scratch memory. ------------------- */

static void *kept(const void *what, size_t bytes) { return memcpy(tartlet_scratch(bytes), what, bytes); }

#define LIST(type, ...) {kept((type[]){__VA_ARGS__}, sizeof(type[]){__VA_ARGS__}), sizeof(type[]){__VA_ARGS__} / sizeof(type)}

static tartlet_decision go_on(void) { return (tartlet_decision){.which = TARTLET_DECISION_GO_ON}; }

static tartlet_decision stop(void) { return (tartlet_decision){.which = TARTLET_DECISION_BRANCHES}; }

static tartlet_decision one(tartlet_branch branch) {
  return (tartlet_decision){.which = TARTLET_DECISION_BRANCHES, .branches = LIST(tartlet_branch, branch)};
}

static tartlet_branch forced(const char *text, uint32_t backtrack) {
  tartlet_steering_splice splice = {.backtrack = backtrack};
  splice.tokens = (tartlet_list_token){tartlet_scratch(strlen(text) * sizeof(tartlet_token)), strlen(text)};
  for (size_t i = 0; i < splice.tokens.length; i++) splice.tokens.data[i] = (unsigned char)text[i];
  return (tartlet_branch){.splices = LIST(tartlet_steering_splice, splice)};
}

static tartlet_decision wait_for(const char *variable, bool has_timer) {
  tartlet_event events[] = {tartlet_store_variable_above(tartlet_text(variable), 0, NULL),
                            has_timer ? tartlet_events_timer(3600000000000) : 0};
  size_t number = has_timer ? 2 : 1;
  return (tartlet_decision){.which = TARTLET_DECISION_WAIT, .wait = {kept(events, number * sizeof *events), number}};
}

static tartlet_decision spliced(void) {
  tartlet_steering_splice splice = {LIST(tartlet_token, 98), 1, LIST(tartlet_token, 88, 89)};
  tartlet_tuple_token_f32 bias = {65, -1.5f};
  return one((tartlet_branch){.sample = true, .bias = LIST(tartlet_tuple_token_f32, bias),
                              .temperature = {true, 0.5f}, .splices = LIST(tartlet_steering_splice, splice)});
}

static tartlet_decision fork_three(void) {
  for (int i = 0; i < 2; i++) {
    num_generated[num_sequences] = num_generated[0];
    num_calls[num_sequences++] = num_calls[0];
  }
  return (tartlet_decision){.which = TARTLET_DECISION_BRANCHES,
                            .branches = LIST(tartlet_branch, forced("1", 0), forced("2", 0), forced("3", 0))};
}

static void tell_siblings(uint32_t sequence, tartlet_list_u32 siblings) {
  tartlet_string all = {0};
  for (size_t i = 0; i < siblings.length; i++) tartlet_append(&all, "%s%u", i ? ", " : "", siblings.data[i]);
  tartlet_log(TARTLET_LEVEL_INFO, "sequence %u of [%s]", sequence, all.data);
}

static tartlet_decision decide(const tartlet_steering_outcome *outcome) {
  uint32_t sequence = outcome->sequence;
  unsigned call = ++num_calls[sequence];
  size_t number = num_generated[sequence];
  if (is("stop")) return number >= 3 ? stop() : go_on();
  if (is("allow"))
    return number < 3 ? one((tartlet_branch){.sample = true, .allow = {true, LIST(tartlet_token, 120, 121)}}) : stop();
  if (is("force")) {
    if (number == 0) return one(forced("Hé!", 0));
    return number == 4 && call == 2 ? one(forced("?", 1)) : stop();
  }
  if (is("splice")) return number < 4 ? spliced() : stop();
  if (is("fork")) {
    if (number == 0 && sequence == 0) return fork_three();
    if (outcome->siblings.length) tell_siblings(sequence, outcome->siblings);
    return number >= 2 + sequence ? stop() : go_on();
  }
  if (is("wait")) return call == 1 ? wait_for("go", true) : number >= 2 ? stop() : go_on();
  if (is("wait-for-ever")) return wait_for("never", false);
  if (is("refused")) {
    if (!outcome->refused.is_some) return one(forced("", 1000));
    tartlet_error error = outcome->refused.value;
    tartlet_log(TARTLET_LEVEL_INFO, "%s: %s", tartlet_error_code_name(error.code), error.message.data);
    return stop();
  }
  return go_on();
}

tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes) {
  tartlet_decision *decisions = tartlet_scratch(outcomes.length * sizeof *decisions);
  for (size_t i = 0; i < outcomes.length; i++) {
    const tartlet_steering_outcome *outcome = &outcomes.data[i];
    num_generated[outcome->sequence] += outcome->tokens.length - outcome->backtrack;
    if (outcome->finish_reason.is_some) {
      tartlet_log(TARTLET_LEVEL_INFO, "sequence %u ends: %s", outcome->sequence, outcome->finish_reason.value.data);
      continue;
    }
    if (is("fail-later") && num_generated[outcome->sequence] >= 2)
      return (tartlet_result_list_decision_string){.is_error = true, .error = tartlet_text("the reason is seven é")};
    decisions[i] = decide(outcome);
  }
  return (tartlet_result_list_decision_string){.ok = {decisions, outcomes.length}};
}
