#include "transcript.h"

tartlet_failure f;

static tartlet_string lines;

/* ---- Values ---------------------------------------------------------------- */

tartlet_string num(uint64_t value) { return tartlet_format("%llu", value); }

tartlet_string flag(bool value) { return T(value ? "true" : "false"); }

tartlet_string real(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return tartlet_format("0x%08x", bits);
}

tartlet_string none(void) { return T("none"); }

tartlet_string cstr(const char *value) { return str(T(value)); }

tartlet_string str(tartlet_string value) {
  char *text = tartlet_new(2 * value.length + 3), *at = text;
  *at++ = '"';
  for (size_t i = 0; i < value.length; i++) {
    char c = value.data[i];
    if (c == '"' || c == '\\' || c == '\n') *at++ = '\\';
    *at++ = c == '\n' ? 'n' : c;
  }
  *at++ = '"', *at = 0;
  return (tartlet_string){text, (size_t)(at - text)};
}

tartlet_string list(const tartlet_string *values, size_t number) {
  size_t length = 3;
  for (size_t i = 0; i < number; i++) length += values[i].length + 2;
  char *text = tartlet_new(length), *at = text;
  *at++ = '[';
  for (size_t i = 0; i < number; i++) {
    if (i) *at++ = ',', *at++ = ' ';
    memcpy(at, values[i].data, values[i].length);
    at += values[i].length;
  }
  *at++ = ']', *at = 0;
  return (tartlet_string){text, (size_t)(at - text)};
}

tartlet_string nums(tartlet_list_token values) {
  tartlet_string *all = tartlet_new(values.length * sizeof *all);
  for (size_t i = 0; i < values.length; i++) all[i] = num(values.data[i]);
  return list(all, values.length);
}

tartlet_string bytes(tartlet_string values) {
  tartlet_string *all = tartlet_new(values.length * sizeof *all);
  for (size_t i = 0; i < values.length; i++) all[i] = num((unsigned char)values.data[i]);
  return list(all, values.length);
}

tartlet_string option_num(bool is_some, uint64_t value) { return is_some ? num(value) : none(); }

tartlet_string option_str(tartlet_option_string value) { return value.is_some ? str(value.value) : none(); }

/* ---- Lines ----------------------------------------------------------------- */

static void add(const char *label, tartlet_string text) {
  static size_t room;
  tartlet_string head = tartlet_format("%s: ", label);
  tartlet_string line = {tartlet_new(head.length + text.length), head.length + text.length};
  memcpy(line.data, head.data, head.length);
  memcpy(line.data + head.length, text.data, text.length);
  tartlet_string json = tartlet_to_json(line);
  size_t length = lines.length + json.length + 2;
  if (length > room) lines.data = realloc(lines.data, room = 2 * length);
  if (lines.length) lines.data[lines.length++] = ',';
  memcpy(lines.data + lines.length, json.data, json.length);
  lines.length += json.length;
}

void say(const char *label, const tartlet_string *values, size_t number) {
  tartlet_string all = list(values, number);
  add(label, (tartlet_string){all.data + 1, all.length - 2});
}

bool told(const char *label, tartlet_string value) {
  if (!f.call) {
    add(label, value);
    return true;
  }
  tartlet_string message = str(f.error.message), hint = str(f.error.hint);
  add(label, tartlet_format("error %s, %s, %s", tartlet_error_code_name(f.error.code), message.data, hint.data));
  tartlet_failure_clear(&f);
  return false;
}

tartlet_result transcript(void) {
  return (tartlet_result){.ok = tartlet_format("[%.*s]", (int)lines.length, lines.data ? lines.data : "")};
}

/* ---- What many cases need -------------------------------------------------- */

tartlet_model model(void) {
  static tartlet_model opened;
  if (!opened.handle) opened = tartlet_default_model(NULL);
  return opened;
}

tartlet_context empty(void) { return tartlet_new_context(model(), NULL); }

tartlet_context filled(const char *text) {
  tartlet_context context = empty();
  tartlet_fill(context, text, NULL);
  return context;
}

tartlet_string repeated(const char *text, size_t times) {
  size_t length = strlen(text);
  char *all = tartlet_new(times * length + 1);
  for (size_t i = 0; i < times; i++) memcpy(all + i * length, text, length);
  all[times * length] = 0;
  return (tartlet_string){all, times * length};
}

tartlet_list_token same_token(tartlet_token token, size_t number) {
  tartlet_list_token tokens = {tartlet_new(number * sizeof token), number};
  for (size_t i = 0; i < number; i++) tokens.data[i] = token;
  return tokens;
}

static bool begins_character(char byte) { return ((unsigned char)byte & 0xc0) != 0x80; }

size_t characters(tartlet_string text) {
  size_t number = 0;
  for (size_t i = 0; i < text.length; i++) number += begins_character(text.data[i]);
  return number;
}

void take_back(tartlet_string *text, size_t number) {
  for (; number && text->length; number -= begins_character(text->data[text->length])) text->length--;
  if (text->data) text->data[text->length] = 0;
}

bool polls(const tartlet_event *events, size_t number, tartlet_option_u64 timeout, const tartlet_event *expected,
           size_t found) {
  tartlet_list_event ready = tartlet_events_poll((tartlet_list_event){(tartlet_event *)events, number}, timeout);
  bool is_so = ready.length == found && (!found || memcmp(ready.data, expected, found * sizeof *expected) == 0);
  tartlet_list_event_free(&ready);
  return is_so;
}

bool is_ready(tartlet_event event) { return polls(&event, 1, FOR_EVER, &event, 1); }

const char *finish_name(tartlet_finish_reason reason) {
  static const char *const names[] = {"eos",      "stop-token", "stop-string", "length",
                                      "complete", "cancelled",  "stopped",     "deadlock"};
  return names[reason];
}

tartlet_draft generate(tartlet_context context) { return tartlet_generate(context, tartlet_greedy(), NO_STOP, &f); }

tartlet_draft generate_some(tartlet_context context, uint32_t max_tokens) {
  return tartlet_generate(context, tartlet_greedy(), tartlet_max_tokens(max_tokens), &f);
}

tartlet_generation start_generation(tartlet_context context) {
  tartlet_sampling greedy = tartlet_greedy();
  return tartlet_generation_generate(context, &greedy, &NO_STOP, &PLAIN, NULL);
}

tartlet_generation start_stream(tartlet_context context) {
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_generation_options options = {.streaming = true};
  return tartlet_generation_generate(context, &greedy, &NO_STOP, &options, NULL);
}

tartlet_finish drain(tartlet_generation *generation, tartlet_draft *whole) {
  tartlet_finish finish = {0};
  tartlet_chunk chunk;
  while (tartlet_stream_next(generation, &chunk, NULL)) {
    tartlet_append(&whole->text, "%.*s", (int)chunk.text.length, chunk.text.data);
    whole->tokens.data =
        realloc(whole->tokens.data, (whole->tokens.length + chunk.tokens.length + 1) * sizeof(tartlet_token));
    memcpy(whole->tokens.data + whole->tokens.length, chunk.tokens.data, chunk.tokens.length * sizeof(tartlet_token));
    whole->tokens.length += chunk.tokens.length;
    if (chunk.finish.is_some) finish = chunk.finish.value;
  }
  return finish;
}
