#include "tartlet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tartlet_hooks.h"

#define STREAM_INTERVAL_NS 50000000

/* ---- Memory ---------------------------------------------------------------- */

void *tartlet_new(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) tartlet_fail("no memory is left for %zu bytes", bytes);
  return memory;
}

/* The host puts what it gives here. A text gets a NUL beyond its end; of other lists nobody sees it. */
__attribute__((export_name("cabi_realloc"))) void *tartlet_realloc(void *old, size_t old_bytes, size_t alignment,
                                                                   size_t bytes) {
  (void)old_bytes, (void)alignment;
  char *memory = realloc(old, bytes + 1);
  if (!memory) tartlet_fail("no memory is left for %zu bytes that the host gives", bytes);
  memory[bytes] = 0;
  return memory;
}

typedef struct scratch {
  struct scratch *next;
  _Alignas(8) char memory[];
} scratch;

static scratch *all_scratch;

void *tartlet_scratch(size_t bytes) {
  scratch *made = tartlet_new(sizeof *made + bytes);
  made->next = all_scratch;
  all_scratch = made;
  return memset(made->memory, 0, bytes);
}

void tartlet_begin_call(void) {
  while (all_scratch) {
    scratch *next = all_scratch->next;
    free(all_scratch);
    all_scratch = next;
  }
}

/* The C library's own: it writes what printf keeps for later. Only there if the program uses stdio. */
__attribute__((weak)) void __stdio_exit(void);

void tartlet_end_call(void) {
  if (__stdio_exit) __stdio_exit();
}

/* ---- Text and results ------------------------------------------------------ */

tartlet_string tartlet_text(const char *text) { return (tartlet_string){(char *)text, strlen(text)}; }

static tartlet_string format_text(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) length = 0;
  char *text = tartlet_new((size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  return (tartlet_string){text, (size_t)length};
}

#define FORMAT(into, format)               \
  tartlet_string into;                     \
  do {                                     \
    va_list arguments;                     \
    va_start(arguments, format);           \
    into = format_text(format, arguments); \
    va_end(arguments);                     \
  } while (0)

tartlet_string tartlet_format(const char *format, ...) {
  FORMAT(text, format);
  return text;
}

void tartlet_append(tartlet_string *text, const char *format, ...) {
  FORMAT(more, format);
  char *longer = realloc(text->data, text->length + more.length + 1);
  if (!longer) tartlet_fail("no memory is left for %zu bytes", text->length + more.length + 1);
  memcpy(longer + text->length, more.data, more.length + 1);
  *text = (tartlet_string){longer, text->length + more.length};
  tartlet_string_free(&more);
}

bool tartlet_is(tartlet_string text, const char *other) {
  return text.length == strlen(other) && memcmp(text.data, other, text.length) == 0;
}

tartlet_result tartlet_ok(const char *format, ...) {
  FORMAT(text, format);
  return (tartlet_result){.is_error = false, .ok = text};
}

tartlet_result tartlet_ok_text(tartlet_string text) {
  return (tartlet_result){.is_error = false, .ok = tartlet_to_json(text)};
}

tartlet_result tartlet_failed(const char *format, ...) {
  FORMAT(text, format);
  return (tartlet_result){.is_error = true, .error = text};
}

/* ---- Failures -------------------------------------------------------------- */

/* The host takes the log line that comes right before a trap for its reason. */
static _Noreturn void end_run(tartlet_string reason) {
  tartlet_end_call();
  tartlet_log_log(TARTLET_LEVEL_ERROR, reason);
  __builtin_trap();
}

_Noreturn void tartlet_fail_at(const char *file, int line, const char *format, ...) {
  char text[1024]; /* memory may be what is lacking */
  int begun = snprintf(text, sizeof text, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + begun, sizeof text - (size_t)begun, format, arguments);
  va_end(arguments);
  end_run(tartlet_text(text));
}

/* The C library's own calls it. */
_Noreturn void __assert_fail(const char *condition, const char *file, int line, const char *function) {
  (void)function;
  tartlet_fail_at(file, line, "%s does not hold", condition);
}

const char *tartlet_error_code_name(tartlet_error_code code) {
  static const char *const names[] = {
      "invalid-argument",  "not-found",   "already-exists", "permission-denied", "quota-exceeded",
      "kv-exhausted",      "context-overflow", "deadline-exceeded", "cancelled",  "unsupported",
      "unavailable",       "internal",    "deadlock",       "program-failed",
  };
  return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

tartlet_string tartlet_failure_text(const tartlet_failure *failure) {
  const tartlet_error *error = &failure->error;
  return tartlet_format("%s: %s: %.*s%s%.*s", failure->call, tartlet_error_code_name(error->code),
                        (int)error->message.length, error->message.data, error->hint.length ? "\n" : "",
                        (int)error->hint.length, error->hint.data);
}

void tartlet_failure_clear(tartlet_failure *failure) {
  if (failure->call) tartlet_error_free(&failure->error);
  *failure = (tartlet_failure){0};
}

void tartlet_refused(const char *call, tartlet_error *error, tartlet_failure *failure) {
  tartlet_failure refused = {call, *error};
  if (!failure) end_run(tartlet_failure_text(&refused));
  *failure = refused;
}

static bool has_failed(const tartlet_failure *failure) { return failure && failure->call; }

/* ---- Models and contexts --------------------------------------------------- */

tartlet_model tartlet_default_model(tartlet_failure *failure) {
  return tartlet_model_open((tartlet_option_string){0}, failure);
}

tartlet_context tartlet_new_context(tartlet_model model, tartlet_failure *failure) {
  return tartlet_context_create(model, (tartlet_option_string){0}, failure);
}

void tartlet_system(tartlet_context context, const char *text, tartlet_failure *failure) {
  tartlet_context_fill_message(context, TARTLET_ROLE_SYSTEM, tartlet_text(text), failure);
}

void tartlet_user(tartlet_context context, const char *text, tartlet_failure *failure) {
  tartlet_context_fill_message(context, TARTLET_ROLE_USER, tartlet_text(text), failure);
}

void tartlet_assistant(tartlet_context context, const char *text, tartlet_failure *failure) {
  tartlet_context_fill_message(context, TARTLET_ROLE_ASSISTANT, tartlet_text(text), failure);
}

void tartlet_fill(tartlet_context context, const char *text, tartlet_failure *failure) {
  tartlet_context_fill(context, tartlet_text(text), failure);
}

void tartlet_flush(tartlet_context context, tartlet_failure *failure) {
  tartlet_event event = tartlet_context_flush(context, failure);
  if (!has_failed(failure)) tartlet_wait(event, failure);
}

void tartlet_evict(tartlet_context context, uint32_t start, uint32_t end, tartlet_failure *failure) {
  tartlet_event event = tartlet_context_evict(context, start, end, failure);
  if (!has_failed(failure)) tartlet_wait(event, failure);
}

void tartlet_save(tartlet_context context, const char *name, tartlet_save_options options, tartlet_failure *failure) {
  tartlet_event event = tartlet_context_save(context, tartlet_text(name), &options, failure);
  if (!has_failed(failure)) tartlet_wait(event, failure);
}

tartlet_context tartlet_open_saved(tartlet_model model, const char *name, tartlet_failure *failure) {
  tartlet_opening opening = tartlet_context_open(model, tartlet_text(name), failure);
  if (has_failed(failure)) return (tartlet_context){0};
  tartlet_wait_ready(tartlet_opening_ready(opening));
  tartlet_context context = tartlet_opening_take(opening, failure);
  tartlet_opening_drop(opening);
  return context;
}

/* ---- How the next token is chosen, and when to stop ------------------------ */

tartlet_sampling tartlet_temperature(float temperature) {
  return (tartlet_sampling){.temperature = temperature, .top_p = 1, .repetition_penalty = 1};
}

tartlet_sampling tartlet_greedy(void) { return tartlet_temperature(0); }

tartlet_sampling tartlet_top_p(float temperature, float p) {
  tartlet_sampling sampling = tartlet_temperature(temperature);
  sampling.top_p = p;
  return sampling;
}

tartlet_sampling tartlet_top_k(uint32_t k, float temperature) {
  tartlet_sampling sampling = tartlet_temperature(temperature);
  sampling.top_k = k;
  return sampling;
}

tartlet_sampling tartlet_min_p(float p, float temperature) {
  tartlet_sampling sampling = tartlet_temperature(temperature);
  sampling.min_p = p;
  return sampling;
}

tartlet_sampling tartlet_seeded(tartlet_sampling sampling, uint64_t seed) {
  sampling.seed = (tartlet_option_u64){true, seed};
  return sampling;
}

tartlet_stop_conditions tartlet_max_tokens(uint32_t number) {
  return (tartlet_stop_conditions){.max_tokens = {true, number}};
}

/* ---- Generation ------------------------------------------------------------ */

void tartlet_draft_free(tartlet_draft *draft) {
  tartlet_string_free(&draft->text);
  tartlet_list_token_free(&draft->tokens);
  tartlet_list_position_log_probabilities_free(&draft->log_probabilities);
  tartlet_finish_free(&draft->finish);
}

tartlet_draft tartlet_generate(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                               tartlet_failure *failure) {
  return tartlet_generate_with(context, sampling, stop, (tartlet_generation_options){0}, failure);
}

tartlet_draft tartlet_generate_with(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                                    tartlet_generation_options options, tartlet_failure *failure) {
  options.streaming = false;
  tartlet_generation generation = tartlet_generation_generate(context, &sampling, &stop, &options, failure);
  return has_failed(failure) ? (tartlet_draft){0} : tartlet_finish_generation(generation, failure);
}

tartlet_draft tartlet_finish_generation(tartlet_generation generation, tartlet_failure *failure) {
  tartlet_chunk chunk = tartlet_generation_next(generation, failure);
  tartlet_generation_drop(generation);
  return (tartlet_draft){chunk.text, chunk.tokens, chunk.log_probabilities, chunk.finish.value};
}

tartlet_generation tartlet_stream(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                                  tartlet_failure *failure) {
  tartlet_generation_options options = {.streaming = true, .chunk_interval_ns = STREAM_INTERVAL_NS};
  return tartlet_generation_generate(context, &sampling, &stop, &options, failure);
}

bool tartlet_stream_next(tartlet_generation *generation, tartlet_chunk *chunk, tartlet_failure *failure) {
  *chunk = (tartlet_chunk){0};
  if (!generation->handle) return false;
  *chunk = tartlet_generation_next(*generation, failure);
  if (chunk->finish.is_some || has_failed(failure)) {
    tartlet_generation_drop(*generation);
    *generation = (tartlet_generation){0};
  }
  return !has_failed(failure);
}

tartlet_controlled_chunks tartlet_controlled_next(tartlet_controlled controlled, tartlet_failure *failure) {
  if (has_failed(failure)) return (tartlet_controlled_chunks){0};
  tartlet_wait_ready(tartlet_controlled_ready(controlled));
  return tartlet_controlled_read(controlled, failure);
}

/* ---- Waiting --------------------------------------------------------------- */

void tartlet_wait(tartlet_event event, tartlet_failure *failure) {
  if (has_failed(failure)) return;
  tartlet_wait_ready(event);
  tartlet_events_outcome(event, failure);
}

void tartlet_wait_ready(tartlet_event event) { tartlet_wait_any(&event, 1, -1); }

size_t tartlet_wait_any(const tartlet_event *events, size_t number, double seconds) {
  tartlet_option_u64 timeout = {seconds >= 0, seconds >= 0 ? (uint64_t)(seconds * 1e9) : 0};
  tartlet_list_event ready = tartlet_events_poll((tartlet_list_event){(tartlet_event *)events, number}, timeout);
  size_t first = number;
  if (ready.length)
    for (first = 0; events[first] != ready.data[0];) first++;
  tartlet_list_event_free(&ready);
  return first;
}

void tartlet_sleep(double seconds) { tartlet_wait(tartlet_events_timer((uint64_t)(seconds * 1e9)), NULL); }

/* ---- Constraints, forward passes, steps, variables ------------------------- */

tartlet_constraint tartlet_compiled(tartlet_constraint constraint, tartlet_failure *failure) {
  if (!has_failed(failure)) tartlet_wait(tartlet_constraint_ready(constraint), failure);
  return constraint;
}

tartlet_place tartlet_matcher_arrive(tartlet_matcher matcher, tartlet_failure *failure) {
  if (has_failed(failure)) return (tartlet_place){0};
  tartlet_wait_ready(tartlet_matcher_ready(matcher));
  return tartlet_matcher_place(matcher, failure);
}

tartlet_findings tartlet_pass_wait(tartlet_pass pass, tartlet_failure *failure) {
  if (has_failed(failure)) return (tartlet_findings){0};
  tartlet_wait_ready(tartlet_pass_ready(pass));
  return tartlet_pass_read(pass, failure);
}

tartlet_answer tartlet_sample(void) { return (tartlet_answer){.sample = true}; }

tartlet_variable tartlet_wait_variable(const char *name, uint64_t above, tartlet_failure *failure) {
  tartlet_wait(tartlet_store_variable_above(tartlet_text(name), above, failure), failure);
  return has_failed(failure) ? (tartlet_variable){0} : tartlet_store_get_variable(tartlet_text(name)).value;
}

/* ---- The run ---------------------------------------------------------------- */

void tartlet_log(tartlet_level level, const char *format, ...) {
  FORMAT(text, format);
  tartlet_log_log(level, text);
  tartlet_string_free(&text);
}

/* SplitMix64, by Sebastiano Vigna. */
uint64_t tartlet_random(void) {
  static uint64_t state;
  static bool is_seeded;
  if (!is_seeded) {
    tartlet_run_info info = tartlet_runs_info();
    state = info.seed;
    is_seeded = true;
    tartlet_run_info_free(&info);
  }
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double tartlet_random_fraction(void) { return (double)(tartlet_random() >> 11) * 0x1p-53; }
