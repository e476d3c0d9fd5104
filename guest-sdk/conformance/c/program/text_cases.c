/* Text on its way through the host: every plane of Unicode, and large inputs. */
#include <string.h>

#include "transcript.h"

static bool same(tartlet_string left, tartlet_string right) {
  return left.length == right.length && memcmp(left.data, right.data, left.length) == 0;
}

static tartlet_string round_trip(tartlet_list_token tokens) {
  return tartlet_model_detokenize(model_of_host(), tokens, NULL);
}

static tartlet_list_token tokenized(tartlet_string text) {
  return tartlet_model_tokenize(model_of_host(), text, &refused);
}

static void unicode(void) {
  tartlet_string texts[] = {S(""),       {"\0", 1}, S("a\tb\r\n"), S("quote \" and \\"),          S("é"),
                            S("\u0301"), S("你好"),  S("😀👩‍👩‍👧"),     S("\ufeff\uffff\U0010ffff")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tartlet_list_token tokens = tokenized(texts[i]);
    SAY("tokens", tokens_of(tokens));
    SAY("and back", yes(same(round_trip(tokens), texts[i])));
    tartlet_store_set_variable(S("x"), texts[i], NULL);
    SAY("variable", yes(same(tartlet_store_get_variable(S("x")).value.value, texts[i])));
  }
}

static void split_characters(void) {
  tartlet_generation running = started(filled("é😀你"), true);
  tartlet_string text = S("");
  tartlet_chunk chunk;
  bool is_whole = true;
  while (tartlet_stream_next(&running, &chunk, NULL)) {
    is_whole = is_whole && !strstr(chunk.text.data, "\ufffd");
    text = tartlet_format("%s%s", text.data, chunk.text.data);
  }
  SAY("whole characters only", yes(is_whole), quoted(text));
  tartlet_draft draft = generated(filled("é😀"), 3);
  SAY("cut in the middle", quoted(draft.text), tokens_of(draft.tokens));
  SAY("cut after it", quoted(generated(filled("😀x"), 4).text));
}

static tartlet_model opened(const char *name) {
  return tartlet_model_open((tartlet_option_string){true, S(name)}, &refused);
}

static void names(void) {
  ATTEMPT("a model", opened("naïve 😀"));
  ATTEMPT("an adapter", tartlet_context_create(model_of_host(), (tartlet_option_string){true, S("höflich")}, &refused));
  ATTEMPT("a saved context", tartlet_open_saved(model_of_host(), "😀", &refused));
  ATTEMPT("with a quote", opened("a \"quoted\" \\ name\nof two lines"));
  ATTEMPT("a long name", opened(repeated("n", 300).data));
}

static void large(void) {
  tartlet_string text = repeated("0123456789abcdé", 20000);
  tartlet_list_token tokens = tokenized(text);
  SAY("tokens", whole(tokens.length), tokens_of((tartlet_list_token){tokens.data + tokens.length - 3, 3}));
  SAY("and back", yes(same(round_trip(tokens), text)));
  ATTEMPT("as a context", tartlet_context_fill(empty(), text, &refused));
  uint64_t version = tartlet_store_set_variable(S("x"), text, &refused);
  attempted("as a variable", whole(version));
  SAY("the same", yes(same(tartlet_store_get_variable(S("x")).value.value, text)));
  ATTEMPT("too large", tokenized(repeated("x", 8 * 1024 * 1024 + 1)));
}

static void large_lists(void) {
  tartlet_context context = empty();
  static tartlet_token many[100000];
  for (size_t i = 0; i < 2000; i++) many[i] = i % 256;
  tartlet_context_fill_tokens(context, (tartlet_list_token){many, 2000}, NULL);
  tartlet_list_token tokens = tartlet_context_tokens(context);
  uint64_t sum = 0;
  for (size_t i = 0; i < tokens.length; i++) sum += tokens.data[i];
  SAY("tokens", whole(tokens.length), whole(tokens.data[0]), whole(tokens.data[1999]), whole(sum));
  memset(many, 0, sizeof many);
  ATTEMPT("too many", tartlet_context_fill_tokens(context, (tartlet_list_token){many, 100000}, &refused));
}

const test_case text_cases[] = {
    {"text.unicode", unicode},
    {"text.split-characters", split_characters},
    {"text.names-and-errors", names},
    {"text.large", large},
    {"text.large-lists", large_lists},
    {0},
};
