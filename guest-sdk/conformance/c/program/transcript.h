/* What a case tells: lines of text that do not depend on the language. The README says how values are written. */
#ifndef TRANSCRIPT_H
#define TRANSCRIPT_H

#include "tartlet.h"

/* A value as it is written. */
typedef const char *shown;

shown whole(uint64_t number);
shown yes(bool value);
shown none(void);
shown ok(void);
shown quoted(tartlet_string text);
shown quoted_text(const char *text);
shown bits(float number);
shown tokens_of(tartlet_list_token tokens);
shown bytes_of(tartlet_list_u8 bytes);
shown floats_of(tartlet_list_f32 numbers);
shown texts_of(tartlet_list_string texts);
/* Of values that are written already. */
shown list_of(const shown *values, size_t number);
#define LIST(...) list_of((const shown[]){__VA_ARGS__}, sizeof((const shown[]){__VA_ARGS__}) / sizeof(shown))

/* Adds a line: what it is, and one value or several. */
#define SAY(label, ...) \
  say(label, (const shown[]){__VA_ARGS__}, sizeof((const shown[]){__VA_ARGS__}) / sizeof(shown))
void say(const char *label, const shown *values, size_t number);

/* Where calls that may be refused say so; give it to them as `&refused`. */
extern tartlet_failure refused;

/* Adds a line: `ok` or the error of what was called with `&refused`. Says whether it was carried out. */
#define ATTEMPT(label, expression) ((void)(expression), attempted(label, ok()))
/* The same with a value, `value` of it if it was carried out. */
#define ATTEMPT_SHOWN(label, expression, value) ((void)(expression), attempted(label, refused.call ? NULL : (value)))
bool attempted(const char *label, shown value);

/* The lines so far, as JSON. */
tartlet_string transcript(void);

/* ---- What many cases begin with ---- */

#define S(text) tartlet_text(text)
#define TOKENS(...) (tartlet_list_token){(tartlet_token[]){__VA_ARGS__}, sizeof((tartlet_token[]){__VA_ARGS__}) / 4}
#define NUMBERS(...) (tartlet_list_u32){(uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4}
#define FOREVER_NS 3600000000000ull

tartlet_model model_of_host(void);
tartlet_context empty(void);
/* A context with a text. */
tartlet_context filled(const char *text);
/* Waits for the outcome of an event, for ATTEMPT. */
void finished(tartlet_event event);
/* Whether poll says that just this event is ready. */
bool is_ready(tartlet_event event);
/* What poll says of events, without a timeout. */
tartlet_list_event polled(tartlet_list_event events);
/* As the contract spells it. */
const char *reason_name(tartlet_finish_reason reason);
/* All that there is to say of how a generation ends, with its tokens. */
void say_draft(const char *label, const tartlet_draft *draft);
/* Starts a generation with the contract's plainest options. */
tartlet_generation started(tartlet_context context, bool streaming);
/* Generates greedily, up to so many tokens; 0: to the end. */
tartlet_draft generated(tartlet_context context, uint32_t most);
/* So many times a text, one after the other. */
tartlet_string repeated(const char *text, size_t times);

/* ---- Cases ---- */

typedef struct {
  const char *name;
  void (*run)(void);
} test_case;

/* Of each subject, up to one without a name. */
extern const test_case constraint_cases[], context_cases[], event_cases[], failure_cases[], forward_cases[],
    generation_cases[], model_cases[], run_cases[], steered_cases[], stepping_cases[], store_cases[], text_cases[],
    tiny_cases[], tree_cases[];

#endif
