#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

/* The contract gives them as one text: each byte as the character of that number, and U+0100 after each token. */
tartlet_list_string vocabulary(tartlet_model model) {
  uint32_t size = tartlet_model_info(model).vocabulary_size;
  tartlet_string text = tartlet_model_vocabulary(model, 0, size, NULL);
  tartlet_list_string tokens = {tartlet_new(size * sizeof(tartlet_string)), 0};
  char *to = text.data, *begin = to;
  for (size_t i = 0; i < text.length; i++) {
    unsigned char byte = (unsigned char)text.data[i];
    if (byte < 0x80) {
      *to++ = (char)byte;
      continue;
    }
    unsigned character = (byte & 0x1fu) << 6 | ((unsigned char)text.data[++i] & 0x3fu);
    if (character == 0x100) {
      tokens.data[tokens.length++] = (tartlet_string){begin, (size_t)(to - begin)};
      begin = to;
    } else {
      *to++ = (char)character;
    }
  }
  return tokens;
}

tartlet_mask mask_where(tartlet_model model, bool (*is_so)(tartlet_string bytes)) {
  tartlet_list_string tokens = vocabulary(model);
  size_t number = (tokens.length + 63) / 64;
  uint64_t *words = memset(tartlet_new(number * sizeof *words), 0, number * sizeof *words);
  for (size_t token = 0; token < tokens.length; token++)
    if (is_so(tokens.data[token])) words[token / 64] |= 1ull << token % 64;
  return tartlet_mask_words(model, (tartlet_list_u64){words, number}, NULL);
}
