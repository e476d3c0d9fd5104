/* Contexts, saved ones too. */
#include "transcript.h"

static tartlet_context adapted(const char *adapter) {
  return tartlet_context_create(model_of_host(), (tartlet_option_string){true, S(adapter)}, &refused);
}

static void create(void) {
  SAY("empty", tokens_of(tartlet_context_tokens(empty())));
  SAY("with an adapter", tokens_of(tartlet_context_tokens(adapted("polite"))));
  ATTEMPT("unknown adapter", adapted("rude"));
  ATTEMPT("no name", adapted(""));
}

static void fill(void) {
  tartlet_context context = empty();
  tartlet_fill(context, "", NULL);
  SAY("nothing", whole(tartlet_context_length(context)));
  tartlet_fill(context, "Aé", NULL);
  tartlet_fill(context, "<|im_end|>", NULL);
  SAY("filled", tokens_of(tartlet_context_tokens(context)));
  ATTEMPT("too long", tartlet_context_fill(context, repeated("x", 2045), &refused));
  ATTEMPT("as long as can be", tartlet_context_fill(context, repeated("x", 2044), &refused));
  SAY("length", whole(tartlet_context_length(context)));
}

static void fill_tokens(void) {
  tartlet_context context = empty();
  ATTEMPT("none", tartlet_context_fill_tokens(context, (tartlet_list_token){0}, &refused));
  ATTEMPT("some", tartlet_context_fill_tokens(context, TOKENS(0, 257, 65), &refused));
  ATTEMPT("out of range", tartlet_context_fill_tokens(context, TOKENS(65, 258), &refused));
  ATTEMPT("largest", tartlet_context_fill_tokens(context, TOKENS(4294967295), &refused));
  SAY("filled", tokens_of(tartlet_context_tokens(context)));
}

static shown text_of(tartlet_context context) {
  return quoted(tartlet_model_detokenize(model_of_host(), tartlet_context_tokens(context), NULL));
}

static void fill_message(void) {
  tartlet_context context = empty();
  tartlet_system(context, "Be <|im_end|> brief.", NULL);
  tartlet_user(context, "Hi", NULL);
  tartlet_assistant(context, "Hello", NULL);
  tartlet_context_fill_message(context, TARTLET_ROLE_TOOL, S("42"), NULL);
  tartlet_list_token tokens = tartlet_context_tokens(context);
  SAY("special tokens stay text", tokens_of((tartlet_list_token){tokens.data, 16}));
  SAY("text", text_of(context));
  ATTEMPT("system not first", tartlet_system(context, "Be long.", &refused));
  SAY("nothing was added", whole(tartlet_context_length(context)));
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

static tartlet_usage usage_of_one_token(tartlet_context context) {
  return tartlet_generate(context, tartlet_greedy(), tartlet_max_tokens(1), NULL).finish.usage;
}

static void flush(void) {
  tartlet_context context = filled("0123456789abcdef0123");
  ATTEMPT("flushed", tartlet_flush(context, &refused));
  ATTEMPT("again", tartlet_flush(context, &refused));
  tartlet_usage usage = usage_of_one_token(context);
  SAY("cached", whole(usage.prompt_tokens), whole(usage.cached_tokens));
  ATTEMPT("an empty one", tartlet_flush(empty(), &refused));
}

static void fork(void) {
  tartlet_context context = filled("0123456789abcdef0123");
  tartlet_context child = tartlet_context_fork(context, NULL);
  tartlet_fill(child, "x", NULL);
  tartlet_fill(context, "yz", NULL);
  tartlet_list_token ours = tartlet_context_tokens(context), theirs = tartlet_context_tokens(child);
  SAY("lengths", whole(ours.length), whole(theirs.length));
  SAY("ends", tokens_of((tartlet_list_token){ours.data + ours.length - 2, 2}),
      tokens_of((tartlet_list_token){theirs.data + theirs.length - 2, 2}));
  tartlet_usage usage = usage_of_one_token(child);
  SAY("cached and shared", whole(usage.cached_tokens), whole(usage.pages), whole(usage.shared_pages));
}

static void length(void) {
  tartlet_context context = empty();
  SAY("empty", whole(tartlet_context_length(context)));
  tartlet_context_fill_tokens(context, TOKENS(1, 2, 3), NULL);
  SAY("three", whole(tartlet_context_length(context)));
}

static void positions(void) {
  tartlet_context context = filled("0123456789");
  SAY("before", whole(tartlet_context_positions(context)));
  tartlet_evict(context, 2, 5, NULL);
  SAY("after", whole(tartlet_context_positions(context)), whole(tartlet_context_length(context)));
}

static void tokens(void) {
  tartlet_context context = empty();
  SAY("empty", tokens_of(tartlet_context_tokens(context)));
  tartlet_context_fill_tokens(context, TOKENS(257, 0, 257), NULL);
  SAY("three", tokens_of(tartlet_context_tokens(context)));
}

static void truncate(void) {
  tartlet_context context = filled("0123456789");
  ATTEMPT("to four", tartlet_context_truncate(context, 4, &refused));
  SAY("tokens", tokens_of(tartlet_context_tokens(context)));
  ATTEMPT("to as many", tartlet_context_truncate(context, 4, &refused));
  ATTEMPT("to more", tartlet_context_truncate(context, 5, &refused));
  ATTEMPT("to far more", tartlet_context_truncate(context, 4294967295, &refused));
  ATTEMPT("to none", tartlet_context_truncate(context, 0, &refused));
  SAY("length", whole(tartlet_context_length(context)));
}

static void evict(void) {
  tartlet_context context = filled("0123456789");
  ATTEMPT("the middle", tartlet_evict(context, 2, 5, &refused));
  SAY("tokens", tokens_of(tartlet_context_tokens(context)));
  ATTEMPT("the last one", tartlet_evict(context, 6, 7, &refused));
  ATTEMPT("out of order", tartlet_evict(context, 3, 1, &refused));
  ATTEMPT("too many", tartlet_evict(context, 0, 4294967295, &refused));
  ATTEMPT("none", tartlet_evict(context, 1, 1, &refused));
  SAY("length", whole(tartlet_context_length(context)), whole(tartlet_context_positions(context)));
}

static const tartlet_save_options plainly, over = {.overwrite = true}, an_hour = {.ttl_ns = {true, FOREVER_NS}};

static tartlet_list_saved_context all_saved(void) { return tartlet_contexts_list_saved(NULL); }

static void save(void) {
  tartlet_context context = filled("Remember me.");
  ATTEMPT("saved", tartlet_save(context, "a/b:c-d_e.f", plainly, &refused));
  ATTEMPT("taken", tartlet_save(context, "a/b:c-d_e.f", plainly, &refused));
  ATTEMPT("overwritten", tartlet_save(context, "a/b:c-d_e.f", over, &refused));
  ATTEMPT("kept for a while", tartlet_save(context, "later", an_hour, &refused));
  ATTEMPT("no name", tartlet_save(context, "", plainly, &refused));
  ATTEMPT("bad name", tartlet_save(context, "naïve", plainly, &refused));
  ATTEMPT("bad beginning", tartlet_save(context, "-x", plainly, &refused));
  ATTEMPT("long name", tartlet_save(context, repeated("n", 129).data, plainly, &refused));
  tartlet_list_saved_context saved = all_saved();
  SAY("names", LIST(quoted(saved.data[0].name), quoted(saved.data[1].name)));
}

static void open_saved(void) {
  tartlet_context context = empty();
  tartlet_user(context, "Remember me.", NULL);
  tartlet_save(context, "mine", plainly, NULL);
  tartlet_user(context, "And this.", NULL);
  tartlet_context opened = tartlet_open_saved(model_of_host(), "mine", NULL);
  SAY("text", text_of(opened));
  tartlet_draft draft = tartlet_generate(opened, tartlet_greedy(), (tartlet_stop_conditions){0}, NULL);
  SAY("goes on", quoted(draft.text), whole(draft.finish.usage.cached_tokens));
  ATTEMPT("unknown", tartlet_open_saved(model_of_host(), "yours", &refused));
  ATTEMPT("bad name", tartlet_open_saved(model_of_host(), "not a name", &refused));
}

static tartlet_opening begin_to_open(void) {
  tartlet_save(filled("Remember me."), "mine", plainly, NULL);
  return tartlet_context_open(model_of_host(), S("mine"), NULL);
}

static void opening_ready(void) {
  tartlet_opening opening = begin_to_open();
  tartlet_event event = tartlet_opening_ready(opening);
  SAY("the same at every call", yes(tartlet_opening_ready(opening) == event));
  SAY("ready", yes(is_ready(event)));
  SAY("still ready", yes(is_ready(event)));
}

static void opening_take(void) {
  tartlet_opening opening = begin_to_open();
  ATTEMPT("too early", tartlet_opening_take(opening, &refused));
  tartlet_wait_ready(tartlet_opening_ready(opening));
  SAY("length", whole(tartlet_context_length(tartlet_opening_take(opening, NULL))));
  ATTEMPT("twice", tartlet_opening_take(opening, &refused));
}

static void list_saved(void) {
  SAY("none", whole(all_saved().length));
  tartlet_save(filled("Remember me."), "b", plainly, NULL);
  tartlet_context polite = adapted("polite");
  tartlet_fill(polite, "Please.", NULL);
  tartlet_save(polite, "a", an_hour, NULL);
  tartlet_list_saved_context saved = all_saved();
  for (size_t i = 0; i < saved.length; i++) {
    const tartlet_saved_context *each = &saved.data[i];
    SAY("saved", quoted(each->name), quoted(each->model), each->adapter.is_some ? quoted(each->adapter.value) : none(),
        whole(each->tokens), whole(each->bytes));
    SAY("for ever", yes(!each->expires_in_ns.is_some));
  }
  uint64_t left = saved.data[0].expires_in_ns.value;
  SAY("about an hour is left", yes(left > 3000000000000 && left <= FOREVER_NS));
}

static void delete_saved(void) {
  tartlet_save(filled("Remember me."), "mine", plainly, NULL);
  tartlet_context opened = tartlet_open_saved(model_of_host(), "mine", NULL);
  ATTEMPT("deleted", tartlet_contexts_delete_saved(S("mine"), &refused));
  ATTEMPT("again", tartlet_contexts_delete_saved(S("mine"), &refused));
  ATTEMPT("bad name", tartlet_contexts_delete_saved(S(""), &refused));
  SAY("opened before", whole(tartlet_context_length(opened)));
  SAY("left", whole(all_saved().length));
}

static void busy(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = tartlet_stream(context, tartlet_greedy(), (tartlet_stop_conditions){0}, NULL);
  tartlet_chunk chunk;
  tartlet_stream_next(&running, &chunk, NULL);
  ATTEMPT("fill", tartlet_fill(context, "x", &refused));
  ATTEMPT("truncate", tartlet_context_truncate(context, 1, &refused));
  ATTEMPT("flush", tartlet_flush(context, &refused));
  ATTEMPT("another generation", tartlet_generate(context, tartlet_greedy(), (tartlet_stop_conditions){0}, &refused));
  tartlet_context child = tartlet_context_fork(context, NULL);
  SAY("a fork has what is there", tokens_of((tartlet_list_token){tartlet_context_tokens(child).data, 8}));
  ATTEMPT("and is free", tartlet_fill(child, "x", &refused));
  tartlet_generation_cancel(running);
  tartlet_finish_reason reason = TARTLET_FINISH_REASON_EOS;
  while (tartlet_stream_next(&running, &chunk, NULL))
    if (chunk.finish.is_some) reason = chunk.finish.value.reason;
  SAY("finish", quoted_text(reason_name(reason)));
  ATTEMPT("free again", tartlet_fill(context, "x", &refused));
}

static void kv_exhausted(void) {
  const char *names[] = {"first", "second", "third"};
  tartlet_context contexts[3];
  for (size_t i = 0; i < 3; i++) {
    contexts[i] = filled(repeated((char[]){names[i][0], 0}, 2000).data);
    ATTEMPT(names[i], tartlet_flush(contexts[i], &refused));
  }
  tartlet_context_drop(contexts[0]);
  ATTEMPT("with room", tartlet_flush(contexts[2], &refused));
}

const test_case context_cases[] = {
    {"contexts.context.create", create},
    {"contexts.context.fill", fill},
    {"contexts.context.fill-tokens", fill_tokens},
    {"contexts.context.fill-message", fill_message},
    {"contexts.context.cue", cue},
    {"contexts.context.flush", flush},
    {"contexts.context.fork", fork},
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
