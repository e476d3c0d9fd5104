#include "transcript.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tartlet_failure refused;

static char *written = "[";

/* ---- Values ---- */

static shown joined(const char *left, const char *right) {
  size_t length = strlen(left), more = strlen(right);
  char *both = tartlet_new(length + more + 1);
  memcpy(both, left, length);
  memcpy(both + length, right, more + 1);
  return both;
}

shown whole(uint64_t number) { return tartlet_format("%llu", number).data; }

shown yes(bool value) { return value ? "true" : "false"; }

shown none(void) { return "none"; }

shown ok(void) { return "ok"; }

/* NUL is written as itself, and would end the text: it is kept as a byte that UTF-8 does not have. */
#define NUL_MARK '\xFF'

shown quoted(tartlet_string text) {
  char *out = tartlet_new(2 * text.length + 3), *at = out;
  *at++ = '"';
  for (size_t i = 0; i < text.length; i++) {
    char each = text.data[i];
    if (each == '"' || each == '\\' || each == '\n') *at++ = '\\';
    *at++ = each == '\n' ? 'n' : each == '\0' ? NUL_MARK : each;
  }
  *at++ = '"';
  *at = 0;
  return out;
}

shown quoted_text(const char *text) { return quoted(S(text)); }

shown bits(float number) {
  uint32_t word;
  memcpy(&word, &number, sizeof word);
  return tartlet_format("0x%08x", (unsigned)word).data;
}

shown list_of(const shown *values, size_t number) {
  size_t length = 3;
  for (size_t i = 0; i < number; i++) length += strlen(values[i]) + 2;
  char *out = tartlet_new(length), *at = out;
  *at++ = '[';
  for (size_t i = 0; i < number; i++) {
    if (i) *at++ = ',', *at++ = ' ';
    size_t more = strlen(values[i]);
    memcpy(at, values[i], more);
    at += more;
  }
  *at++ = ']';
  *at = 0;
  return out;
}

#define LISTED(name, type, show)                                                  \
  shown name(type values) {                                                       \
    shown *each = tartlet_new(values.length * sizeof *each + 1);                  \
    for (size_t i = 0; i < values.length; i++) each[i] = show(values.data[i]);    \
    return list_of(each, values.length);                                          \
  }
LISTED(tokens_of, tartlet_list_token, whole)
LISTED(bytes_of, tartlet_list_u8, whole)
LISTED(floats_of, tartlet_list_f32, bits)
LISTED(texts_of, tartlet_list_string, quoted)

/* ---- Lines ---- */

static void add_line(const char *line) {
  size_t length = strlen(line);
  char *copy = tartlet_new(length + 1);
  for (size_t i = 0; i <= length; i++) copy[i] = line[i] == NUL_MARK ? '\0' : line[i];
  tartlet_string json = tartlet_to_json((tartlet_string){copy, length});
  written = (char *)joined(joined(written, written[1] ? "," : ""), json.data);
}

void say(const char *label, const shown *values, size_t number) {
  shown line = joined(label, ": ");
  for (size_t i = 0; i < number; i++) line = joined(line, i ? joined(", ", values[i]) : values[i]);
  add_line(line);
}

bool attempted(const char *label, shown value) {
  bool is_done = !refused.call;
  if (!is_done) {
    const tartlet_error *error = &refused.error;
    shown parts[] = {tartlet_format("error %s", tartlet_error_code_name(error->code)).data, quoted(error->message),
                     quoted(error->hint)};
    say(label, parts, 3);
    refused = (tartlet_failure){0};
  } else {
    say(label, &value, 1);
  }
  return is_done;
}

tartlet_string transcript(void) { return S(joined(written, "]")); }

/* ---- What many cases begin with ---- */

tartlet_model model_of_host(void) { return tartlet_default_model(NULL); }

tartlet_context empty(void) { return tartlet_new_context(model_of_host(), NULL); }

tartlet_context filled(const char *text) {
  tartlet_context context = empty();
  tartlet_fill(context, text, NULL);
  return context;
}

void finished(tartlet_event event) {
  if (!refused.call) tartlet_wait(event, &refused);
}

tartlet_list_event polled(tartlet_list_event events) { return tartlet_events_poll(events, (tartlet_option_u64){0}); }

bool is_ready(tartlet_event event) {
  tartlet_list_event ready = polled((tartlet_list_event){&event, 1});
  return ready.length == 1 && ready.data[0] == event;
}

tartlet_string repeated(const char *text, size_t times) {
  size_t length = strlen(text);
  char *out = tartlet_new(times * length + 1);
  for (size_t i = 0; i < times; i++) memcpy(out + i * length, text, length);
  out[times * length] = 0;
  return (tartlet_string){out, times * length};
}

const char *reason_name(tartlet_finish_reason reason) {
  static const char *const names[] = {"eos",      "stop-token", "stop-string", "length",
                                      "complete", "cancelled",  "stopped",     "deadlock"};
  return names[reason];
}

static shown optional_text(tartlet_option_string text) { return text.is_some ? quoted(text.value) : none(); }

void say_draft(const char *label, const tartlet_draft *draft) {
  const tartlet_finish *finish = &draft->finish;
  SAY(label, quoted(draft->text), quoted_text(reason_name(finish->reason)), optional_text(finish->stop_string));
  SAY("tokens", tokens_of(draft->tokens));
}

tartlet_generation started(tartlet_context context, bool streaming) {
  tartlet_sampling sampling = tartlet_greedy();
  tartlet_stop_conditions stop = {0};
  tartlet_generation_options options = {.streaming = streaming};
  return tartlet_generation_generate(context, &sampling, &stop, &options, &refused);
}

tartlet_draft generated(tartlet_context context, uint32_t most) {
  return tartlet_generate(context, tartlet_greedy(), most ? tartlet_max_tokens(most) : (tartlet_stop_conditions){0}, &refused);
}
