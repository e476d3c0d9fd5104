/* Text on its way through the host: every plane of Unicode, and large inputs. */

#include "transcript.h"

#define LITERAL(text) {(text), sizeof(text) - 1}

static bool same(tartlet_string one, tartlet_string other) {
  return one.length == other.length && memcmp(one.data, other.data, one.length) == 0;
}

static tartlet_string variable(const char *name) { return tartlet_store_get_variable(T(name)).value.value; }

static void unicode(void) {
  tartlet_string texts[] = {
      LITERAL(""),   LITERAL("\0"), LITERAL("a\tb\r\n"), LITERAL("quote \" and \\"),           LITERAL("é"),
      LITERAL("\u0301"), LITERAL("你好"), LITERAL("😀👩‍👩‍👧"), LITERAL("\ufeff\uffff\U0010ffff"),
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tartlet_list_token tokens = tartlet_model_tokenize(model(), texts[i], NULL);
    SAY("tokens", nums(tokens));
    SAY("and back", flag(same(tartlet_model_detokenize(model(), tokens, NULL), texts[i])));
    tartlet_store_set_variable(T("x"), texts[i], NULL);
    SAY("variable", flag(same(variable("x"), texts[i])));
  }
}

static void split_characters(void) {
  tartlet_generation running = start_stream(filled("é😀你"));
  tartlet_string all = {0};
  tartlet_chunk chunk;
  bool are_whole = true;
  while (tartlet_stream_next(&running, &chunk, NULL)) {
    are_whole = are_whole && !strstr(chunk.text.length ? chunk.text.data : "", "\ufffd");
    tartlet_append(&all, "%.*s", (int)chunk.text.length, chunk.text.data);
  }
  SAY("whole characters only", flag(are_whole), str(all));
  tartlet_draft draft = generate_some(filled("é😀"), 3);
  SAY("cut in the middle", str(draft.text), nums(draft.tokens));
  SAY("cut after it", str(generate_some(filled("😀x"), 4).text));
}

static void names(void) {
  ATTEMPT("a model", tartlet_model_open((tartlet_option_string){true, T("naïve 😀")}, &f));
  ATTEMPT("an adapter", tartlet_context_create(model(), (tartlet_option_string){true, T("höflich")}, &f));
  ATTEMPT("a saved context", tartlet_open_saved(model(), "😀", &f));
  tartlet_string quoted = T("a \"quoted\" \\ name\nof two lines");
  ATTEMPT("with a quote", tartlet_model_open((tartlet_option_string){true, quoted}, &f));
  ATTEMPT("a long name", tartlet_model_open((tartlet_option_string){true, repeated("n", 300)}, &f));
}

static void large(void) {
  tartlet_string text = repeated("0123456789abcdé", 20000);
  tartlet_list_token tokens = tartlet_model_tokenize(model(), text, NULL);
  SAY("tokens", num(tokens.length), nums((tartlet_list_token){tokens.data + tokens.length - 3, 3}));
  SAY("and back", flag(same(tartlet_model_detokenize(model(), tokens, NULL), text)));
  ATTEMPT("as a context", tartlet_context_fill(empty(), text, &f));
  ATTEMPT_VALUE("as a variable", num(tartlet_store_set_variable(T("x"), text, &f)));
  SAY("the same", flag(same(variable("x"), text)));
  ATTEMPT("too large", tartlet_model_tokenize(model(), repeated("x", 8 * 1024 * 1024 + 1), &f));
}

static void large_lists(void) {
  tartlet_context context = empty();
  tartlet_list_token some = same_token(0, 2000);
  uint64_t sum = 0;
  for (size_t i = 0; i < some.length; i++) some.data[i] = i % 256;
  tartlet_context_fill_tokens(context, some, NULL);
  tartlet_list_token tokens = tartlet_context_tokens(context);
  for (size_t i = 0; i < tokens.length; i++) sum += tokens.data[i];
  SAY("tokens", num(tokens.length), num(tokens.data[0]), num(tokens.data[1999]), num(sum));
  ATTEMPT("too many", tartlet_context_fill_tokens(context, same_token(0, 100000), &f));
}

const test_case text_cases[] = {
    {"text.unicode", unicode},
    {"text.split-characters", split_characters},
    {"text.names-and-errors", names},
    {"text.large", large},
    {"text.large-lists", large_lists},
    {0},
};
