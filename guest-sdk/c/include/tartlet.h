#ifndef TARTLET_H
#define TARTLET_H

/* The SDK for programs in C. tartlet_bindings.h has every function of the contract, and says how memory, failures and
 * handles are dealt with; here is what makes them comfortable.
 *
 * A program is one function, `run`:
 *
 *     #include "tartlet.h"
 *
 *     tartlet_result run(tartlet_string input) {
 *       tartlet_context context = tartlet_new_context(tartlet_default_model(NULL), NULL);
 *       tartlet_user(context, "Describe a cat.", NULL);
 *       return tartlet_ok_text(tartlet_generate(context, tartlet_greedy(), tartlet_max_tokens(32), NULL).text);
 *     }
 *
 * With -DTARTLET_CONTROLLER it is a controller instead: `start` and `step`.
 *
 * A `const char *` ends with a NUL. So does each text of the host, and so `text.data` is one; but a text that has a NUL
 * in it seems shorter than it is. printf writes to the run's output; assert ends the run as tartlet_assert does. */

#include "tartlet_bindings.h"

/* ---- Text and results ----------------------------------------------------- */

/** A text as the contract wants it. Nothing is copied. */
tartlet_string tartlet_text(const char *text);

/** A new text, as printf would write it. */
__attribute__((format(printf, 1, 2))) tartlet_string tartlet_format(const char *format, ...);

/** Adds to the end of a text of the program's own, as printf would write it. Begin with zeros. */
__attribute__((format(printf, 2, 3))) void tartlet_append(tartlet_string *text, const char *format, ...);

/** Whether a text is this one. */
bool tartlet_is(tartlet_string text, const char *other);

/** A list over an array, whose length the compiler knows: `(tartlet_list_token)TARTLET_LIST(tokens)`. */
#define TARTLET_LIST(array) {(array), sizeof(array) / sizeof *(array)}

/** What `run` returns. */
typedef tartlet_result_string_string tartlet_result;

/** The program has done its work: the result is JSON, as printf would write it. */
__attribute__((format(printf, 1, 2))) tartlet_result tartlet_ok(const char *format, ...);

/** The program has done its work: the result is a text. */
tartlet_result tartlet_ok_text(tartlet_string text);

/** The program could not do its work: the error is for people, as printf would write it. */
__attribute__((format(printf, 1, 2))) tartlet_result tartlet_failed(const char *format, ...);

/* ---- Failures -------------------------------------------------------------- */

/** Ends the run here and now with an error for people, as printf would write it. It begins with the place. */
#define tartlet_fail(...) tartlet_fail_at(__FILE__, __LINE__, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) _Noreturn void tartlet_fail_at(const char *file, int line, const char *format,
                                                                    ...);

/** Ends the run if what must be so is not. */
#define tartlet_assert(condition) ((condition) ? (void)0 : tartlet_fail("%s does not hold", #condition))

/** The failure as text for people: the call, what is wrong with it, and what to do about it. */
tartlet_string tartlet_failure_text(const tartlet_failure *failure);

/** Frees what it holds, and makes it ready for another call. */
void tartlet_failure_clear(tartlet_failure *failure);

/** The name of a code, as the contract has it: `invalid-argument`. */
const char *tartlet_error_code_name(tartlet_error_code code);

/* ---- Memory ---------------------------------------------------------------- */

/** Zeroed memory that is freed by itself: in a controller before the next call of `step`, otherwise with the run. */
void *tartlet_scratch(size_t bytes);

/** malloc that ends the run if there is no memory left. */
void *tartlet_new(size_t bytes);

/* ---- Models and contexts --------------------------------------------------- */

/** The host's default model. */
tartlet_model tartlet_default_model(tartlet_failure *failure);

/** An empty context without an adapter. */
tartlet_context tartlet_new_context(tartlet_model model, tartlet_failure *failure);

/** Append a chat message of somebody. */
void tartlet_system(tartlet_context context, const char *text, tartlet_failure *failure);
void tartlet_user(tartlet_context context, const char *text, tartlet_failure *failure);
void tartlet_assistant(tartlet_context context, const char *text, tartlet_failure *failure);

/** Appends a text as it is. */
void tartlet_fill(tartlet_context context, const char *text, tartlet_failure *failure);

/** Computes what has been filled, and waits for it. */
void tartlet_flush(tartlet_context context, tartlet_failure *failure);

/** Drops the tokens from `start` to before `end`, and waits for it. */
void tartlet_evict(tartlet_context context, uint32_t start, uint32_t end, tartlet_failure *failure);

/** Saves the context, and waits for it. */
void tartlet_save(tartlet_context context, const char *name, tartlet_save_options options, tartlet_failure *failure);

/** Opens a saved context, and waits for it. */
tartlet_context tartlet_open_saved(tartlet_model model, const char *name, tartlet_failure *failure);

/* ---- How the next token is chosen, and when to stop ------------------------ */

/** Always the most likely token. */
tartlet_sampling tartlet_greedy(void);

/** Any token; below 1 likely ones become likelier. */
tartlet_sampling tartlet_temperature(float temperature);

/** The most likely tokens that together have the probability `p`. */
tartlet_sampling tartlet_top_p(float temperature, float p);

/** The `k` most likely tokens. */
tartlet_sampling tartlet_top_k(uint32_t k, float temperature);

/** Tokens that are at least `p` times as likely as the most likely one. */
tartlet_sampling tartlet_min_p(float p, float temperature);

/** The same with a seed of its own. */
tartlet_sampling tartlet_seeded(tartlet_sampling sampling, uint64_t seed);

/** At most so many tokens. Set other fields for other conditions. */
tartlet_stop_conditions tartlet_max_tokens(uint32_t number);

/* ---- Generation ------------------------------------------------------------ */

/** All that a generation has produced. */
typedef struct {
  tartlet_string text;
  tartlet_list_token tokens;
  /** One for each token, if asked for. */
  tartlet_list_position_log_probabilities log_probabilities;
  tartlet_finish finish;
} tartlet_draft;
void tartlet_draft_free(tartlet_draft *draft);

/** Generates, and waits for the end. */
tartlet_draft tartlet_generate(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                               tartlet_failure *failure);

/** The same with the contract's other options; `streaming` is ignored. */
tartlet_draft tartlet_generate_with(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                                    tartlet_generation_options options, tartlet_failure *failure);

/** Waits for the end of a generation that was started without streaming, and drops it. To have many at once, start all
 * with `tartlet_generation_generate`, and finish one after the other: the model works on all of them. */
tartlet_draft tartlet_finish_generation(tartlet_generation generation, tartlet_failure *failure);

/** Starts a generation whose chunks come as they are made, at most one each 50 ms. */
tartlet_generation tartlet_stream(tartlet_context context, tartlet_sampling sampling, tartlet_stop_conditions stop,
                                  tartlet_failure *failure);

/** Waits for the next chunk. False if there is none: it has ended or failed, and is dropped. */
bool tartlet_stream_next(tartlet_generation *generation, tartlet_chunk *chunk, tartlet_failure *failure);

/** What comes next of a generation with a controller: waits, and reads it. */
tartlet_controlled_chunks tartlet_controlled_next(tartlet_controlled controlled, tartlet_failure *failure);

/* ---- Waiting --------------------------------------------------------------- */

/** Waits for an operation (a flush, a save, a timer, ...), and frees its event. */
void tartlet_wait(tartlet_event event, tartlet_failure *failure);

/** Waits until an event is ready, which stays: one that a resource's `ready` gave. */
void tartlet_wait_ready(tartlet_event event);

/** Waits for any of some events: the place of the first that is ready, or `number` if the time has passed. No time
 * (below 0) is for ever. */
size_t tartlet_wait_any(const tartlet_event *events, size_t number, double seconds);

void tartlet_sleep(double seconds);

/* ---- Constraints, forward passes, steps, variables ------------------------- */

/** Waits until a constraint is compiled: `tartlet_compiled(tartlet_constraint_regex(model, pattern, NULL), NULL)`.
 * `tartlet_constraint_id` then gives what the generation's options take. */
tartlet_constraint tartlet_compiled(tartlet_constraint constraint, tartlet_failure *failure);

/** Waits until a matcher has arrived where it was moved to, and says where that is. */
tartlet_place tartlet_matcher_arrive(tartlet_matcher matcher, tartlet_failure *failure);

/** Waits for a forward pass, and reads what it has found. */
tartlet_findings tartlet_pass_wait(tartlet_pass pass, tartlet_failure *failure);

/** An answer that samples a token, without restrictions. */
tartlet_answer tartlet_sample(void);

/** Waits until the variable's version is above that one, and reads it. */
tartlet_variable tartlet_wait_variable(const char *name, uint64_t above, tartlet_failure *failure);

/* ---- The run ---------------------------------------------------------------- */

/** A line of the log, as printf would write it. */
__attribute__((format(printf, 2, 3))) void tartlet_log(tartlet_level level, const char *format, ...);

/** A random number, which comes from the run's seed. */
uint64_t tartlet_random(void);

/** The same as a number from 0 to 1, exclusive. */
double tartlet_random_fraction(void);

/* ---- JSON ------------------------------------------------------------------- */

/** A text as JSON writes it, in quotes. */
tartlet_string tartlet_to_json(tartlet_string text);

/** A value out of an object, such as the input, as JSON; none (`data` is NULL) if it is not there. Nothing is copied.
 * Give it a value that is an object for what is inside that. Names are compared as they are written. */
tartlet_string tartlet_json_field(tartlet_string object, const char *name);

/** The number of an object's field, or another if it has none. */
double tartlet_json_number(tartlet_string object, const char *name, double otherwise);

/** The text of an object's field, or another if it has none. */
tartlet_string tartlet_json_text(tartlet_string object, const char *name, const char *otherwise);

#endif
