/* Models and their tokenizers. */
#include "transcript.h"

static shown strings_sorted(tartlet_list_string texts) {
  for (size_t i = 0; i < texts.length; i++)
    for (size_t j = i + 1; j < texts.length; j++)
      if (__builtin_strcmp(texts.data[j].data, texts.data[i].data) < 0) {
        tartlet_string other = texts.data[i];
        texts.data[i] = texts.data[j];
        texts.data[j] = other;
      }
  return texts_of(texts);
}

static void say_info(tartlet_models_model_info info) {
  SAY("name", quoted(info.name));
  SAY("architecture", quoted(info.architecture));
  SAY("numbers", whole(info.context_length), whole(info.vocabulary_size), whole(info.page_size));
  SAY("eos tokens", tokens_of(info.eos_tokens));
  SAY("features", strings_sorted(info.features));
  SAY("adapters", texts_of(info.adapters));
}

static tartlet_model opened(const char *name) {
  return tartlet_model_open((tartlet_option_string){true, S(name)}, &refused);
}

static void open_model(void) {
  SAY("default", quoted(tartlet_model_info(model_of_host()).name));
  SAY("by name", quoted(tartlet_model_info(opened("fake")).name));
  ATTEMPT("unknown", opened("no such model"));
  ATTEMPT("empty name", opened(""));
}

static void info(void) { say_info(tartlet_model_info(model_of_host())); }

static void list_models(void) {
  tartlet_list_models_model_info models = tartlet_models_list_models();
  SAY("how many", whole(models.length));
  say_info(models.data[0]);
}

static shown tokenized(const char *text) { return tokens_of(tartlet_model_tokenize(model_of_host(), S(text), NULL)); }

static void tokenize(void) {
  SAY("empty", tokenized(""));
  SAY("ascii", tokenized("Hi"));
  SAY("special", tokenized("a<|im_end|>b"));
  SAY("four bytes", tokenized("😀"));
}

static tartlet_string detokenized(tartlet_list_token tokens) {
  return tartlet_model_detokenize(model_of_host(), tokens, &refused);
}

static void detokenize(void) {
  SAY("empty", quoted(detokenized((tartlet_list_token){0})));
  SAY("text", quoted(detokenized(TOKENS(72, 105, 256))));
  SAY("half a character", quoted(detokenized(TOKENS(0xF0, 0x9F))));
  ATTEMPT("out of range", detokenized(TOKENS(1, 258)));
  ATTEMPT("largest", detokenized(TOKENS(4294967295)));
}

static tartlet_list_u8 token_of(tartlet_token token) {
  return tartlet_model_token_bytes(model_of_host(), token, &refused);
}

static void token_bytes(void) {
  SAY("zero", bytes_of(token_of(0)));
  SAY("not a character", bytes_of(token_of(255)));
  SAY("special", bytes_of(token_of(256)));
  ATTEMPT("out of range", token_of(258));
}

static void vocabulary(void) {
  tartlet_model model = model_of_host();
  uint32_t number = tartlet_model_info(model).vocabulary_size;
  SAY("how many", whole(number));
  SAY("some", bytes_of(token_of(0)), bytes_of(token_of(65)), bytes_of(token_of(255)), bytes_of(token_of(257)));
  SAY("two of them", quoted(tartlet_model_vocabulary(model, 65, 2, NULL)));
  SAY("beyond the end", quoted(tartlet_model_vocabulary(model, 257, 4294967295, NULL)));
  ATTEMPT("none", tartlet_model_vocabulary(model, 258, 1, &refused));
  tartlet_string text = {0};
  ATTEMPT_SHOWN("no tokens", text = tartlet_model_vocabulary(model, 0, 0, &refused), quoted(text));
}

static void unsupported(void) {
  tartlet_model model = model_of_host();
  SAY("features", strings_sorted(tartlet_model_info(model).features));
  tartlet_context context = empty();
  ATTEMPT("a message", tartlet_user(context, "Hi", &refused));
  ATTEMPT("a turn", tartlet_context_cue(context, &refused));
  tartlet_fill(context, "0123", NULL);
  ATTEMPT("eviction", tartlet_evict(context, 0, 1, &refused));
  ATTEMPT("a constraint", tartlet_constraint_regex(model, S("a"), &refused));
  ATTEMPT("a matcher", tartlet_constraint_regex(model, S("a"), &refused));
  SAY("it can generate", quoted(tartlet_generate(context, tartlet_greedy(), (tartlet_stop_conditions){0}, NULL).text));
}

const test_case model_cases[] = {
    {"models.model.open", open_model},
    {"models.model.info", info},
    {"models.list-models", list_models},
    {"models.model.tokenize", tokenize},
    {"models.model.detokenize", detokenize},
    {"models.model.token-bytes", token_bytes},
    {"models.model.vocabulary", vocabulary},
    {"models.unsupported", unsupported},
    {0},
};
