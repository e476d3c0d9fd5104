/* Models and their tokenizers. */

#include "transcript.h"
#include "vocabulary.h"

static void open_model(void) {
  SAY("default", str(tartlet_model_info(model()).name));
  tartlet_model named = tartlet_model_open((tartlet_option_string){true, T("fake")}, NULL);
  SAY("by name", str(tartlet_model_info(named).name));
  ATTEMPT("unknown", tartlet_model_open((tartlet_option_string){true, T("no such model")}, &f));
  ATTEMPT("empty name", tartlet_model_open((tartlet_option_string){true, T("")}, &f));
}

static int by_text(const void *one, const void *other) {
  return strcmp(((const tartlet_string *)one)->data, ((const tartlet_string *)other)->data);
}

static tartlet_string texts(tartlet_list_string all, bool is_sorted) {
  tartlet_string *values = tartlet_new(all.length * sizeof *values);
  for (size_t i = 0; i < all.length; i++) values[i] = str(all.data[i]);
  if (is_sorted) qsort(values, all.length, sizeof *values, by_text);
  return list(values, all.length);
}

static void say_info(tartlet_models_model_info info) {
  SAY("name", str(info.name));
  SAY("architecture", str(info.architecture));
  SAY("numbers", num(info.context_length), num(info.vocabulary_size), num(info.page_size));
  SAY("eos tokens", nums(info.eos_tokens));
  SAY("features", texts(info.features, true));
  SAY("adapters", texts(info.adapters, false));
}

static void info(void) { say_info(tartlet_model_info(model())); }

static void list_models(void) {
  tartlet_list_models_model_info models = tartlet_models_list_models();
  SAY("how many", num(models.length));
  say_info(models.data[0]);
}

static void tokenize(void) {
  SAY("empty", nums(tartlet_model_tokenize(model(), T(""), NULL)));
  SAY("ascii", nums(tartlet_model_tokenize(model(), T("Hi"), NULL)));
  SAY("special", nums(tartlet_model_tokenize(model(), T("a<|im_end|>b"), NULL)));
  SAY("four bytes", nums(tartlet_model_tokenize(model(), T("😀"), NULL)));
}

static void detokenize(void) {
  SAY("empty", str(tartlet_model_detokenize(model(), (tartlet_list_token){0}, NULL)));
  SAY("text", str(tartlet_model_detokenize(model(), TOKENS(72, 105, 256), NULL)));
  SAY("half a character", str(tartlet_model_detokenize(model(), TOKENS(0xf0, 0x9f), NULL)));
  ATTEMPT_VALUE("out of range", str(tartlet_model_detokenize(model(), TOKENS(1, 258), &f)));
  ATTEMPT_VALUE("largest", str(tartlet_model_detokenize(model(), TOKENS(UINT32_MAX), &f)));
}

static tartlet_string bytes_of(tartlet_token token) {
  tartlet_list_u8 found = tartlet_model_token_bytes(model(), token, &f);
  return bytes((tartlet_string){(char *)found.data, found.length});
}

static void token_bytes(void) {
  SAY("zero", bytes_of(0));
  SAY("not a character", bytes_of(255));
  SAY("special", bytes_of(256));
  ATTEMPT_VALUE("out of range", bytes_of(258));
}

static void vocabulary_case(void) {
  tartlet_list_string tokens = vocabulary(model());
  SAY("how many", num(tokens.length));
  SAY("some", bytes(tokens.data[0]), bytes(tokens.data[65]), bytes(tokens.data[255]), bytes(tokens.data[257]));
  SAY("two of them", str(tartlet_model_vocabulary(model(), 65, 2, NULL)));
  SAY("beyond the end", str(tartlet_model_vocabulary(model(), 257, UINT32_MAX, NULL)));
  ATTEMPT_VALUE("none", str(tartlet_model_vocabulary(model(), 258, 1, &f)));
  ATTEMPT_VALUE("no tokens", str(tartlet_model_vocabulary(model(), 0, 0, &f)));
}

static void unsupported(void) {
  SAY("features", texts(tartlet_model_info(model()).features, true));
  tartlet_context context = empty();
  ATTEMPT("a message", tartlet_user(context, "Hi", &f));
  ATTEMPT("a turn", tartlet_context_cue(context, &f));
  tartlet_fill(context, "0123", NULL);
  ATTEMPT("eviction", tartlet_evict(context, 0, 1, &f));
  ATTEMPT("a constraint", tartlet_compiled(tartlet_constraint_regex(model(), T("a"), &f), &f));
  ATTEMPT("a matcher", tartlet_compiled(tartlet_constraint_regex(model(), T("a"), &f), &f));
  SAY("it can generate", str(generate(context).text));
}

const test_case model_cases[] = {
    {"models.model.open", open_model},
    {"models.model.info", info},
    {"models.list-models", list_models},
    {"models.model.tokenize", tokenize},
    {"models.model.detokenize", detokenize},
    {"models.model.token-bytes", token_bytes},
    {"models.model.vocabulary", vocabulary_case},
    {"models.unsupported", unsupported},
    {0},
};
