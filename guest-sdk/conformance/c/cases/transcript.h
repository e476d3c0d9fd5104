#ifndef TRANSCRIPT_H
#define TRANSCRIPT_H

/* What a case tells: lines of text that do not depend on the language. The README says how values are written. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tartlet.h"

/* A case: its name in cases.toml, and what it does. Each file has a table of them, which ends with zeros. */
typedef struct {
  const char *name;
  void (*run)(void);
} test_case;

/* Values, as they are written. */
tartlet_string num(uint64_t value);
tartlet_string flag(bool value);
tartlet_string real(float value);
tartlet_string str(tartlet_string value);
tartlet_string cstr(const char *value);
tartlet_string none(void);
tartlet_string nums(tartlet_list_token values);
tartlet_string bytes(tartlet_string values);
tartlet_string list(const tartlet_string *values, size_t number);
tartlet_string option_num(bool is_some, uint64_t value);
tartlet_string option_str(tartlet_option_string value);

/* Adds a line: what it is, and one value or several. */
#define SAY(label, ...) say(label, (tartlet_string[]){__VA_ARGS__}, sizeof(tartlet_string[]){__VA_ARGS__} / sizeof(tartlet_string))
void say(const char *label, const tartlet_string *values, size_t number);

/* Where calls that may fail say so. */
extern tartlet_failure f;

/* Makes a call that has `&f`, and tells `ok` or the error. Whether it was carried out. */
#define ATTEMPT(label, ...) ((void)(__VA_ARGS__), told(label, tartlet_text("ok")))
/* The same with a value in the place of `ok`. */
#define ATTEMPT_VALUE(label, ...) told(label, __VA_ARGS__)
bool told(const char *label, tartlet_string value);

/* All lines so far, as a JSON list. */
tartlet_result transcript(void);

/* ---- What many cases need -------------------------------------------------- */

#define T tartlet_text
#define TOKENS(...) \
  ((tartlet_list_token){(tartlet_token[]){__VA_ARGS__}, sizeof(tartlet_token[]){__VA_ARGS__} / sizeof(tartlet_token)})
#define IDS(...) \
  ((tartlet_list_u32){(uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t)})

static const uint64_t MOST = UINT64_MAX, HOUR = 3600000000000;

tartlet_model model(void);
tartlet_context empty(void);
tartlet_context filled(const char *text);
/* So many times the same character, or text. */
tartlet_string repeated(const char *text, size_t times);
tartlet_list_token same_token(tartlet_token token, size_t number);
/* Number of characters. */
size_t characters(tartlet_string text);
/* Drops so many characters from the end. */
void take_back(tartlet_string *text, size_t number);
/* What polling gives: whether it is these events, in this order. */
bool polls(const tartlet_event *events, size_t number, tartlet_option_u64 timeout, const tartlet_event *expected, size_t found);
bool is_ready(tartlet_event event);
const char *finish_name(tartlet_finish_reason reason);

static const tartlet_option_u64 FOR_EVER = {false, 0};
static const tartlet_stop_conditions NO_STOP = {0};
static const tartlet_generation_options PLAIN = {0};

/* A whole generation, greedy; a failure is in `f`. */
tartlet_draft generate(tartlet_context context);
tartlet_draft generate_some(tartlet_context context, uint32_t max_tokens);
tartlet_generation start_generation(tartlet_context context);
/* A streamed generation, greedy, which tells of each token. */
tartlet_generation start_stream(tartlet_context context);
/* Reads it to its end. The text and the tokens of all chunks, added to `whole`. */
tartlet_finish drain(tartlet_generation *generation, tartlet_draft *whole);

#endif
