/* Writes texts as JSON, and finds values in JSON that is well-formed, as the run's input is. */

#include <stdlib.h>
#include <string.h>

#include "tartlet.h"

tartlet_string tartlet_to_json(tartlet_string text) {
  static const char digits[] = "0123456789abcdef";
  char *json = tartlet_new(6 * text.length + 3), *at = json;
  *at++ = '"';
  for (size_t i = 0; i < text.length; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') {
      *at++ = '\\', *at++ = (char)c;
    } else if (c == '\n') {
      *at++ = '\\', *at++ = 'n';
    } else if (c < 0x20) {
      memcpy(at, "\\u00", 4);
      at[4] = digits[c >> 4], at[5] = digits[c & 15], at += 6;
    } else {
      *at++ = (char)c;
    }
  }
  *at++ = '"', *at = 0;
  return (tartlet_string){json, (size_t)(at - json)};
}

static const char *skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

static const char *skip_text(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\') at++;
  return at < end ? at + 1 : end;
}

/* Whatever value begins here: a text, a nested value, or one without quotes and brackets. */
static const char *skip_value(const char *at, const char *end) {
  size_t depth = 0;
  while (at < end) {
    if (*at == '"') {
      at = skip_text(at, end);
    } else if (*at == '{' || *at == '[') {
      depth++, at++;
    } else if (depth && (*at == '}' || *at == ']')) {
      depth--, at++;
    } else if (!depth && strchr(",:]} \t\n\r", *at)) {
      return at;
    } else {
      at++;
      continue;
    }
    if (!depth) return at;
  }
  return end;
}

tartlet_string tartlet_json_field(tartlet_string object, const char *name) {
  const char *end = object.data + object.length, *at = skip_space(object.data, end);
  size_t length = strlen(name);
  if (at == end || *at != '{') return (tartlet_string){0};
  while (at < end && *at != '}') {
    const char *key = skip_space(at + 1, end);
    const char *key_end = skip_value(key, end);
    const char *value = skip_space(skip_space(key_end, end) + 1, end);
    if (value >= end) break;
    at = skip_value(value, end);
    if (key_end - key == (ptrdiff_t)length + 2 && memcmp(key + 1, name, length) == 0)
      return (tartlet_string){(char *)value, (size_t)(at - value)};
    at = skip_space(at, end);
  }
  return (tartlet_string){0};
}

double tartlet_json_number(tartlet_string object, const char *name, double otherwise) {
  tartlet_string value = tartlet_json_field(object, name);
  char *end = value.data;
  double number = value.data ? strtod(value.data, &end) : 0;
  return end == value.data ? otherwise : number;
}

static unsigned hex(const char *digits) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = digits[i] <= '9' ? digits[i] - '0' : (digits[i] | 32) - 'a' + 10;
    value = value * 16 + (unsigned)digit;
  }
  return value;
}

static char *put_utf8(char *at, unsigned c) {
  if (c < 0x80) return *at++ = (char)c, at;
  if (c < 0x800) return *at++ = (char)(0xc0 | c >> 6), *at++ = (char)(0x80 | (c & 63)), at;
  if (c < 0x10000)
    *at++ = (char)(0xe0 | c >> 12);
  else
    *at++ = (char)(0xf0 | c >> 18), *at++ = (char)(0x80 | (c >> 12 & 63));
  return *at++ = (char)(0x80 | (c >> 6 & 63)), *at++ = (char)(0x80 | (c & 63)), at;
}

tartlet_string tartlet_json_text(tartlet_string object, const char *name, const char *otherwise) {
  tartlet_string value = tartlet_json_field(object, name);
  if (value.length < 2 || value.data[0] != '"') return tartlet_format("%s", otherwise);
  char *text = tartlet_new(value.length), *to = text;
  const char *end = value.data + value.length - 1;
  for (const char *at = value.data + 1; at < end; at++) {
    if (*at != '\\' || at + 1 >= end) {
      *to++ = *at;
      continue;
    }
    static const char escapes[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const char *escape = strchr(escapes, *++at);
    if (*at == 'u' && end - at > 4) {
      unsigned c = hex(at + 1);
      at += 4;
      if (c >= 0xd800 && c < 0xdc00 && end - at > 6) { /* the first half of a pair */
        c = 0x10000 + ((c - 0xd800) << 10) + (hex(at + 3) - 0xdc00);
        at += 6;
      }
      to = put_utf8(to, c);
    } else {
      *to++ = escape ? meanings[escape - escapes] : *at;
    }
  }
  *to = 0;
  return (tartlet_string){text, (size_t)(to - text)};
}
