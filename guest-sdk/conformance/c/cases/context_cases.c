/* Contexts, saved ones too. */

#include "transcript.h"

static tartlet_string tokens_of(tartlet_context context) { return nums(tartlet_context_tokens(context)); }

static tartlet_string text_of(tartlet_context context) {
  return str(tartlet_model_detokenize(model(), tartlet_context_tokens(context), NULL));
}

static tartlet_string length_of(tartlet_context context) { return num(tartlet_context_length(context)); }

static tartlet_context with_adapter(const char *name) {
  return tartlet_context_create(model(), (tartlet_option_string){true, T(name)}, &f);
}

static void create(void) {
  SAY("empty", tokens_of(empty()));
  SAY("with an adapter", tokens_of(with_adapter("polite")));
  ATTEMPT("unknown adapter", with_adapter("rude"));
  ATTEMPT("no name", with_adapter(""));
}

static void fill(void) {
  tartlet_context context = empty();
  tartlet_fill(context, "", NULL);
  SAY("nothing", length_of(context));
  tartlet_fill(context, "Aé", NULL);
  tartlet_fill(context, "<|im_end|>", NULL);
  SAY("filled", tokens_of(context));
  ATTEMPT("too long", tartlet_context_fill(context, repeated("x", 2045), &f));
  ATTEMPT("as long as can be", tartlet_context_fill(context, repeated("x", 2044), &f));
  SAY("length", length_of(context));
}

static void fill_tokens(void) {
  tartlet_context context = empty();
  ATTEMPT("none", tartlet_context_fill_tokens(context, (tartlet_list_token){0}, &f));
  ATTEMPT("some", tartlet_context_fill_tokens(context, TOKENS(0, 257, 65), &f));
  ATTEMPT("out of range", tartlet_context_fill_tokens(context, TOKENS(65, 258), &f));
  ATTEMPT("largest", tartlet_context_fill_tokens(context, TOKENS(UINT32_MAX), &f));
  SAY("filled", tokens_of(context));
}

static void fill_message(void) {
  tartlet_context context = empty();
  tartlet_system(context, "Be <|im_end|> brief.", NULL);
  tartlet_user(context, "Hi", NULL);
  tartlet_assistant(context, "Hello", NULL);
  tartlet_context_fill_message(context, TARTLET_ROLE_TOOL, T("42"), NULL);
  tartlet_list_token tokens = tartlet_context_tokens(context);
  tokens.length = 16;
  SAY("special tokens stay text", nums(tokens));
  SAY("text", text_of(context));
  ATTEMPT("system not first", tartlet_system(context, "Be long.", &f));
  SAY("nothing was added", length_of(context));
}

static void cue(void) {
  tartlet_context context = empty();
  tartlet_user(context, "Hi", NULL);
  tartlet_context_cue(context, NULL);
  SAY("text", text_of(context));
  tartlet_fill(context, "Well", NULL);
  tartlet_user(context, "What?", NULL);
  SAY("the turn is closed", text_of(context));
}

static void flush(void) {
  tartlet_context context = filled("0123456789abcdef0123");
  ATTEMPT("flushed", tartlet_flush(context, &f));
  ATTEMPT("again", tartlet_flush(context, &f));
  tartlet_usage usage = generate_some(context, 1).finish.usage;
  SAY("cached", num(usage.prompt_tokens), num(usage.cached_tokens));
  ATTEMPT("an empty one", tartlet_flush(empty(), &f));
}

static tartlet_string last_two(tartlet_context context) {
  tartlet_list_token tokens = tartlet_context_tokens(context);
  return nums((tartlet_list_token){tokens.data + tokens.length - 2, 2});
}

static void fork_context(void) {
  tartlet_context context = filled("0123456789abcdef0123");
  tartlet_context child = tartlet_context_fork(context, NULL);
  tartlet_fill(child, "x", NULL);
  tartlet_fill(context, "yz", NULL);
  SAY("lengths", length_of(context), length_of(child));
  SAY("ends", last_two(context), last_two(child));
  tartlet_usage usage = generate_some(child, 1).finish.usage;
  SAY("cached and shared", num(usage.cached_tokens), num(usage.pages), num(usage.shared_pages));
}

static void length(void) {
  tartlet_context context = empty();
  SAY("empty", length_of(context));
  tartlet_context_fill_tokens(context, TOKENS(1, 2, 3), NULL);
  SAY("three", length_of(context));
}

static void positions(void) {
  tartlet_context context = filled("0123456789");
  SAY("before", num(tartlet_context_positions(context)));
  tartlet_evict(context, 2, 5, NULL);
  SAY("after", num(tartlet_context_positions(context)), length_of(context));
}

static void tokens(void) {
  tartlet_context context = empty();
  SAY("empty", tokens_of(context));
  tartlet_context_fill_tokens(context, TOKENS(257, 0, 257), NULL);
  SAY("three", tokens_of(context));
}

static void truncate(void) {
  tartlet_context context = filled("0123456789");
  ATTEMPT("to four", tartlet_context_truncate(context, 4, &f));
  SAY("tokens", tokens_of(context));
  ATTEMPT("to as many", tartlet_context_truncate(context, 4, &f));
  ATTEMPT("to more", tartlet_context_truncate(context, 5, &f));
  ATTEMPT("to far more", tartlet_context_truncate(context, UINT32_MAX, &f));
  ATTEMPT("to none", tartlet_context_truncate(context, 0, &f));
  SAY("length", length_of(context));
}

static void evict(void) {
  tartlet_context context = filled("0123456789");
  ATTEMPT("the middle", tartlet_evict(context, 2, 5, &f));
  SAY("tokens", tokens_of(context));
  ATTEMPT("the last one", tartlet_evict(context, 6, 7, &f));
  ATTEMPT("out of order", tartlet_evict(context, 3, 1, &f));
  ATTEMPT("too many", tartlet_evict(context, 0, UINT32_MAX, &f));
  ATTEMPT("none", tartlet_evict(context, 1, 1, &f));
  SAY("length", length_of(context), num(tartlet_context_positions(context)));
}

static tartlet_list_saved_context all_saved(void) { return tartlet_contexts_list_saved(NULL); }

static void save(void) {
  tartlet_context context = filled("Remember me.");
  tartlet_save_options plain = {0};
  ATTEMPT("saved", tartlet_save(context, "a/b:c-d_e.f", plain, &f));
  ATTEMPT("taken", tartlet_save(context, "a/b:c-d_e.f", plain, &f));
  ATTEMPT("overwritten", tartlet_save(context, "a/b:c-d_e.f", (tartlet_save_options){.overwrite = true}, &f));
  ATTEMPT("kept for a while", tartlet_save(context, "later", (tartlet_save_options){.ttl_ns = {true, HOUR}}, &f));
  ATTEMPT("no name", tartlet_save(context, "", plain, &f));
  ATTEMPT("bad name", tartlet_save(context, "naïve", plain, &f));
  ATTEMPT("bad beginning", tartlet_save(context, "-x", plain, &f));
  ATTEMPT("long name", tartlet_save(context, repeated("n", 129).data, plain, &f));
  tartlet_list_saved_context saved = all_saved();
  tartlet_string names[4];
  for (size_t i = 0; i < saved.length; i++) names[i] = str(saved.data[i].name);
  SAY("names", list(names, saved.length));
}

static void open_saved(void) {
  tartlet_context context = empty();
  tartlet_user(context, "Remember me.", NULL);
  tartlet_save(context, "mine", (tartlet_save_options){0}, NULL);
  tartlet_user(context, "And this.", NULL);
  tartlet_context opened = tartlet_open_saved(model(), "mine", NULL);
  SAY("text", text_of(opened));
  tartlet_draft draft = generate(opened);
  SAY("goes on", str(draft.text), num(draft.finish.usage.cached_tokens));
  ATTEMPT("unknown", tartlet_open_saved(model(), "yours", &f));
  ATTEMPT("bad name", tartlet_open_saved(model(), "not a name", &f));
}

static tartlet_opening opening(void) {
  tartlet_save(filled("Remember me."), "mine", (tartlet_save_options){0}, NULL);
  return tartlet_context_open(model(), T("mine"), NULL);
}

static void opening_ready(void) {
  tartlet_opening opened = opening();
  tartlet_event event = tartlet_opening_ready(opened);
  SAY("the same at every call", flag(tartlet_opening_ready(opened) == event));
  SAY("ready", flag(is_ready(event)));
  SAY("still ready", flag(polls(&event, 1, (tartlet_option_u64){true, 0}, &event, 1)));
  tartlet_opening_drop(opened);
}

static void opening_take(void) {
  tartlet_opening opened = opening();
  ATTEMPT("too early", tartlet_opening_take(opened, &f));
  tartlet_wait_ready(tartlet_opening_ready(opened));
  SAY("length", length_of(tartlet_opening_take(opened, NULL)));
  ATTEMPT("twice", tartlet_opening_take(opened, &f));
  tartlet_opening_drop(opened);
}

static void list_saved(void) {
  SAY("none", num(all_saved().length));
  tartlet_save(filled("Remember me."), "b", (tartlet_save_options){0}, NULL);
  tartlet_context polite = with_adapter("polite");
  tartlet_fill(polite, "Please.", NULL);
  tartlet_save(polite, "a", (tartlet_save_options){.ttl_ns = {true, HOUR}}, NULL);
  tartlet_list_saved_context saved = all_saved();
  for (size_t i = 0; i < saved.length; i++) {
    tartlet_saved_context each = saved.data[i];
    SAY("saved", str(each.name), str(each.model), option_str(each.adapter), num(each.tokens), num(each.bytes));
    SAY("for ever", flag(!each.expires_in_ns.is_some));
  }
  uint64_t left = saved.data[0].expires_in_ns.value;
  SAY("about an hour is left", flag(left > HOUR / 6 * 5 && left <= HOUR));
}

static void delete_saved(void) {
  tartlet_save(filled("Remember me."), "mine", (tartlet_save_options){0}, NULL);
  tartlet_context opened = tartlet_open_saved(model(), "mine", NULL);
  ATTEMPT("deleted", tartlet_contexts_delete_saved(T("mine"), &f));
  ATTEMPT("again", tartlet_contexts_delete_saved(T("mine"), &f));
  ATTEMPT("bad name", tartlet_contexts_delete_saved(T(""), &f));
  SAY("opened before", length_of(opened));
  SAY("left", num(all_saved().length));
}

static void busy(void) {
  tartlet_context context = filled("endless");
  tartlet_generation generation = start_stream(context);
  tartlet_chunk chunk;
  do tartlet_stream_next(&generation, &chunk, NULL);
  while (!chunk.tokens.length);
  ATTEMPT("fill", tartlet_fill(context, "x", &f));
  ATTEMPT("truncate", tartlet_context_truncate(context, 1, &f));
  ATTEMPT("flush", tartlet_flush(context, &f));
  ATTEMPT("another generation", generate(context));
  tartlet_context child = tartlet_context_fork(context, NULL);
  tartlet_list_token tokens = tartlet_context_tokens(child);
  tokens.length = 8;
  SAY("a fork has what is there", nums(tokens));
  ATTEMPT("and is free", tartlet_fill(child, "x", &f));
  tartlet_generation_cancel(generation);
  tartlet_draft rest = {0};
  SAY("finish", cstr(finish_name(drain(&generation, &rest).reason)));
  ATTEMPT("free again", tartlet_fill(context, "x", &f));
}

static void kv_exhausted(void) {
  const char *names[] = {"first", "second", "third"};
  tartlet_context contexts[3];
  for (int i = 0; i < 3; i++) {
    contexts[i] = filled(repeated((char[]){names[i][0], 0}, 2000).data);
    ATTEMPT(names[i], tartlet_flush(contexts[i], &f));
  }
  tartlet_context_drop(contexts[0]);
  ATTEMPT("with room", tartlet_flush(contexts[2], &f));
}

const test_case context_cases[] = {
    {"contexts.context.create", create},
    {"contexts.context.fill", fill},
    {"contexts.context.fill-tokens", fill_tokens},
    {"contexts.context.fill-message", fill_message},
    {"contexts.context.cue", cue},
    {"contexts.context.flush", flush},
    {"contexts.context.fork", fork_context},
    {"contexts.context.length", length},
    {"contexts.context.positions", positions},
    {"contexts.context.tokens", tokens},
    {"contexts.context.truncate", truncate},
    {"contexts.context.evict", evict},
    {"contexts.context.save", save},
    {"contexts.context.open", open_saved},
    {"contexts.opening.ready", opening_ready},
    {"contexts.opening.take", opening_take},
    {"contexts.list-saved", list_saved},
    {"contexts.delete-saved", delete_saved},
    {"contexts.busy", busy},
    {"contexts.kv-exhausted", kv_exhausted},
    {0},
};
