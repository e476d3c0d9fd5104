/* Generations that a controller steers, which the host knows as `steered`: ../controller, in C. */

#include "transcript.h"

enum { MOST_SEQUENCES = 8, MOST_TOKENS = 64 };

/* What one sequence has come to. */
typedef struct {
  bool is_there;
  tartlet_string text;
  tartlet_token tokens[MOST_TOKENS];
  size_t num_tokens;
  tartlet_string logprobs[MOST_TOKENS];
  size_t num_logprobs;
  tartlet_finish_reason reason;
} sequence;

static sequence sequences[MOST_SEQUENCES];

static tartlet_controlled start(tartlet_context context, const char *name, const char *does,
                                tartlet_stop_conditions stop, tartlet_generation_options options) {
  tartlet_string config = tartlet_format("{\"do\": \"%s\"}", does);
  tartlet_sampling greedy = tartlet_greedy();
  return tartlet_controllers_control(context, T(name), config, &greedy, &stop, &options, &f);
}

static void take_in(tartlet_sequence_chunk chunk) {
  sequence *it = &sequences[chunk.sequence];
  it->is_there = true;
  take_back(&it->text, chunk.text_backtrack);
  tartlet_append(&it->text, "%.*s", (int)chunk.text.length, chunk.text.data);
  it->num_tokens -= chunk.token_backtrack;
  for (size_t i = 0; i < chunk.tokens.length; i++)
    if (it->num_tokens < MOST_TOKENS) it->tokens[it->num_tokens++] = chunk.tokens.data[i];
  for (size_t i = 0; i < chunk.log_probabilities.length; i++)
    it->logprobs[it->num_logprobs++] = real(chunk.log_probabilities.data[i].chosen.log_probability);
  if (chunk.finish.is_some) it->reason = chunk.finish.value.reason;
}

/* Reads a generation to its end, or to a failure, which is in `f`. */
static void finish(tartlet_controlled running) {
  memset(sequences, 0, sizeof sequences);
  for (bool has_ended = f.call != NULL; !has_ended;) {
    tartlet_controlled_chunks found = tartlet_controlled_next(running, &f);
    for (size_t i = 0; i < found.chunks.length; i++) take_in(found.chunks.data[i]);
    has_ended = found.ended || f.call;
  }
  if (running.handle) tartlet_controlled_drop(running);
}

static void say_draft(void) {
  for (size_t i = 0; i < MOST_SEQUENCES; i++) {
    sequence *it = &sequences[i];
    if (it->is_there)
      SAY("sequence", str(it->text), nums((tartlet_list_token){it->tokens, it->num_tokens}),
          cstr(finish_name(it->reason)));
  }
}

static void steer(const char *text, const char *does, tartlet_stop_conditions stop) {
  finish(start(filled(text), "steered", does, stop, PLAIN));
}

static void control(void) {
  steer("abcdef", "stop", NO_STOP);
  say_draft();
  steer("abcdef", "go", tartlet_max_tokens(4));
  say_draft();
  ATTEMPT("unknown", finish(start(filled("x"), "nobody", "", NO_STOP, PLAIN)));
  ATTEMPT("an empty context", steer("", "go", NO_STOP));
}

static void allow(void) { steer("abcdef", "allow", NO_STOP), say_draft(); }

static void force(void) { steer("abcdef", "force", NO_STOP), say_draft(); }

static void splice(void) { steer("abcdef", "splice", NO_STOP), say_draft(); }

static void fork_case(void) {
  tartlet_generation_options options = {.log_probabilities = {true, 1}};
  finish(start(filled("abcdef"), "steered", "fork", NO_STOP, options));
  say_draft();
  tartlet_string all[MOST_SEQUENCES];
  size_t number = 0;
  for (; number < MOST_SEQUENCES && sequences[number].is_there; number++)
    all[number] = list(sequences[number].logprobs, sequences[number].num_logprobs);
  SAY("log-probabilities", list(all, number));
}

static void prompt(void) {
  tartlet_context context = filled("abcdef");
  finish(start(context, "steered", "prompt", tartlet_max_tokens(4), PLAIN));
  say_draft();
  SAY("context", nums(tartlet_context_tokens(context)));
}

static void wait_case(void) {
  tartlet_controlled running = start(filled("abcdef"), "steered", "wait", NO_STOP, PLAIN);
  tartlet_sleep(0.01);
  tartlet_store_set_variable(T("go"), T("x"), NULL);
  finish(running);
  say_draft();
}

static void deadlock(void) { steer("abcdef", "wait-for-ever", NO_STOP), say_draft(); }

static void refused(void) { steer("abcdef", "refused", NO_STOP), say_draft(); }

static void failed(void) {
  const char *both[] = {"fail-at-start", "fail-later"};
  for (int i = 0; i < 2; i++) {
    steer("abcdef", both[i], NO_STOP);
    bool has_reason = f.call && strstr(f.error.message.data, "the reason is seven é");
    SAY(both[i], cstr(tartlet_error_code_name(f.error.code)), flag(has_reason));
    tartlet_failure_clear(&f);
  }
}

static void cancelled(void) {
  tartlet_context context = filled("endless");
  tartlet_generation_options options = {.streaming = true};
  tartlet_controlled running = start(context, "steered", "go", NO_STOP, options);
  while (!tartlet_controlled_next(running, NULL).chunks.length) {
  }
  tartlet_controlled_cancel(running);
  finish(running);
  SAY("finish", cstr(finish_name(sequences[0].reason)));
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &f));
}

static void ready(void) {
  tartlet_controlled running = start(filled("abcdef"), "steered", "stop", NO_STOP, PLAIN);
  tartlet_event event = tartlet_controlled_ready(running);
  SAY("the same at every call", flag(tartlet_controlled_ready(running) == event));
  SAY("ready", flag(is_ready(event)));
}

static void read_chunks(void) {
  tartlet_controlled running = start(filled("abcdef"), "steered", "stop", NO_STOP, PLAIN);
  tartlet_controlled_chunks found = tartlet_controlled_next(running, NULL);
  SAY("ended", flag(found.ended), num(found.chunks.length));
  tartlet_sequence_chunk chunk = found.chunks.data[0];
  SAY("chunk", num(chunk.sequence), num(chunk.text_backtrack), str(chunk.text), num(chunk.token_backtrack),
      nums(chunk.tokens));
  SAY("finish", cstr(finish_name(chunk.finish.value.reason)), option_str(chunk.finish.value.stop_string));
  ATTEMPT("after the end", tartlet_controlled_read(running, &f));
}

static void cancel(void) {
  tartlet_context context = filled("endless");
  tartlet_generation_options options = {.streaming = true};
  tartlet_controlled running = start(context, "steered", "go", NO_STOP, options);
  tartlet_wait_ready(tartlet_controlled_ready(running));
  tartlet_controlled_cancel(running);
  bool has_ended = false;
  while (!has_ended) {
    tartlet_controlled_chunks found = tartlet_controlled_next(running, NULL);
    for (size_t i = 0; i < found.chunks.length; i++)
      if (found.chunks.data[i].finish.is_some) {
        SAY("finish", cstr(finish_name(found.chunks.data[i].finish.value.reason)));
        has_ended = true;
      }
  }
  tartlet_controlled_cancel(running);
  ATTEMPT("the context is free", tartlet_context_truncate(context, 7, &f));
}

const test_case steered_cases[] = {
    {"controllers.control", control},
    {"controllers.allow", allow},
    {"controllers.force", force},
    {"controllers.splice", splice},
    {"controllers.fork", fork_case},
    {"controllers.prompt", prompt},
    {"controllers.wait", wait_case},
    {"controllers.deadlock", deadlock},
    {"controllers.refused", refused},
    {"controllers.failed", failed},
    {"controllers.cancelled", cancelled},
    {"controllers.controlled.ready", ready},
    {"controllers.controlled.read", read_chunks},
    {"controllers.controlled.cancel", cancel},
    {0},
};
