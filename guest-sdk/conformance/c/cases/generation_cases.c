/* Generations, and what the program tells people. */

#include <math.h>

#include "transcript.h"

static void say_draft(const char *label, tartlet_draft draft) {
  tartlet_finish finish = draft.finish;
  SAY(label, str(draft.text), cstr(finish_name(finish.reason)), option_str(finish.stop_string));
  SAY("tokens", nums(draft.tokens));
}

static void generate_case(void) {
  tartlet_context context = filled("Hello é");
  tartlet_draft draft = generate(context);
  say_draft("draft", draft);
  tartlet_usage usage = draft.finish.usage;
  SAY("usage", num(usage.prompt_tokens), num(usage.cached_tokens), num(usage.generated_tokens), num(usage.forced_tokens));
  SAY("guesses", num(usage.draft_tokens), num(usage.accepted_tokens));
  SAY("pages", num(usage.pages), num(usage.shared_pages));
  SAY("times", flag(0 < usage.first_token_ns && usage.first_token_ns <= usage.total_ns));
  SAY("context", nums(tartlet_context_tokens(context)));
  say_draft("goes on", generate_some(context, 3));
}

static void ready(void) {
  tartlet_generation running = start_generation(filled("Hello"));
  tartlet_event event = tartlet_generation_ready(running);
  SAY("the same at every call", flag(tartlet_generation_ready(running) == event));
  SAY("ready", flag(is_ready(event)));
  SAY("text", str(tartlet_generation_read(running, NULL).text));
}

static void read_chunk(void) {
  tartlet_generation running = start_generation(filled("Hello"));
  tartlet_chunk early = tartlet_generation_read(running, NULL); /* what there is by now, which may be nothing */
  SAY("not the end", flag(!early.finish.is_some), num(early.log_probabilities.length));
  tartlet_wait_ready(tartlet_generation_ready(running));
  tartlet_chunk chunk = tartlet_generation_read(running, NULL);
  tartlet_list_token tokens = {tartlet_new(64 * sizeof(tartlet_token)), 0};
  for (size_t i = 0; i < early.tokens.length; i++) tokens.data[tokens.length++] = early.tokens.data[i];
  for (size_t i = 0; i < chunk.tokens.length; i++) tokens.data[tokens.length++] = chunk.tokens.data[i];
  SAY("all", str(tartlet_format("%.*s%.*s", (int)early.text.length, early.text.data, (int)chunk.text.length, chunk.text.data)),
      nums(tokens));
  tartlet_finish finish = chunk.finish.value;
  SAY("finish", cstr(finish_name(finish.reason)), option_str(finish.stop_string), num(finish.usage.generated_tokens));
  ATTEMPT("after the end", tartlet_generation_read(running, &f));
}

static void next_chunk(void) {
  tartlet_generation running = start_stream(filled("Hello"));
  tartlet_string text = {0};
  tartlet_chunk chunk;
  do {
    chunk = tartlet_generation_next(running, NULL);
    tartlet_append(&text, "%.*s", (int)chunk.text.length, chunk.text.data);
  } while (!chunk.finish.is_some);
  SAY("text", str(text));
  ATTEMPT("after the end", tartlet_generation_next(running, &f));
}

static void cancel(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = start_stream(context);
  tartlet_draft draft = {0};
  tartlet_chunk chunk;
  do tartlet_stream_next(&running, &chunk, NULL);
  while (!chunk.text.length);
  SAY("began", str((tartlet_string){chunk.text.data, 1}));
  tartlet_generation_cancel(running);
  tartlet_generation_cancel(running);
  draft.tokens = chunk.tokens;
  SAY("finish", cstr(finish_name(drain(&running, &draft).reason)));
  SAY("less than all", flag(draft.tokens.length < 1500));
  tartlet_list_token all = tartlet_context_tokens(context);
  SAY("the context has them",
      flag(all.length - 7 == draft.tokens.length && !memcmp(all.data + 7, draft.tokens.data, 4 * draft.tokens.length)));
}

static tartlet_draft stopped(tartlet_context context, tartlet_stop_conditions stop) {
  return tartlet_generate(tartlet_context_fork(context, NULL), tartlet_greedy(), stop, &f);
}

static void stop(void) {
  tartlet_context context = filled("one two three");
  tartlet_string some[] = {T("e t"), T("xyz")}, others[] = {T("wo"), T("three")}, ne = T("ne");
  tartlet_token w = 119, t = 116, largest = UINT32_MAX;
  say_draft("length", stopped(context, tartlet_max_tokens(4)));
  say_draft("string", stopped(context, (tartlet_stop_conditions){.strings = {some, 2}}));
  say_draft("token", stopped(context, (tartlet_stop_conditions){.tokens = {&w, 1}}));
  say_draft("first of several", stopped(context, (tartlet_stop_conditions){.max_tokens = {true, 6}, .strings = {others, 2}}));
  say_draft("ends with any", stopped(context, (tartlet_stop_conditions){.tokens = {&t, 1}, .strings = {&ne, 1}}));
  say_draft("beyond eos", stopped(context, (tartlet_stop_conditions){.max_tokens = {true, 16}, .ignore_eos = true}));
  ATTEMPT("no tokens at all",
          stopped(context, (tartlet_stop_conditions){.max_tokens = {true, 1}, .tokens = {&largest, 1}}));
}

static tartlet_context hi;

static void attempt_sampling(const char *label, tartlet_sampling sampling) {
  tartlet_stop_conditions one = tartlet_max_tokens(1);
  tartlet_generation running = tartlet_generation_generate(hi, &sampling, &one, &PLAIN, &f);
  if (ATTEMPT(label, running)) SAY("generates", str(tartlet_finish_generation(running, NULL).text));
}

static tartlet_sampling with(tartlet_sampling sampling, tartlet_tuple_token_f32 *bias, size_t number) {
  sampling.logit_bias = (tartlet_list_tuple_token_f32){bias, number};
  return sampling;
}

static void sampling_limits(void) {
  hi = filled("Hi");
  tartlet_sampling all = {0.5f, 40, 0.9f, 0.05f, 1.1f, 0.1f, 0.1f, {0}, {true, MOST}};
  attempt_sampling("largest seed", with(all, (tartlet_tuple_token_f32[]){{65, 1.5f}, {0, -100}}, 2));
  attempt_sampling("negative temperature", tartlet_temperature(-1));
  attempt_sampling("temperature is no number", tartlet_temperature(NAN));
  attempt_sampling("endless temperature", tartlet_temperature(INFINITY));
  attempt_sampling("top-p of zero", tartlet_top_p(1, 0));
  attempt_sampling("top-p above one", tartlet_top_p(1, 1.5f));
  attempt_sampling("min-p above one", tartlet_min_p(2, 1));
  attempt_sampling("repetition penalty of zero", (tartlet_sampling){.temperature = 1, .top_p = 1});
  attempt_sampling("bias of an unknown token", with(tartlet_greedy(), (tartlet_tuple_token_f32[]){{258, 1}}, 1));
  attempt_sampling("bias is no number", with(tartlet_greedy(), (tartlet_tuple_token_f32[]){{65, NAN}}, 1));
  attempt_sampling("largest top-k", tartlet_seeded(tartlet_top_k(UINT32_MAX, 0), 0));
}

static void attempt_options(const char *label, tartlet_stop_conditions stop, tartlet_generation_options options) {
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_generation running = tartlet_generation_generate(hi, &greedy, &stop, &options, &f);
  if (!ATTEMPT(label, running)) return;
  ATTEMPT_VALUE("and then", str(tartlet_generation_next(running, &f).text));
  tartlet_generation_drop(running);
}

static tartlet_generation_options guesses(uint32_t max_draft, uint32_t ngram, tartlet_list_token expected) {
  return (tartlet_generation_options){.speculation = {true, {max_draft, ngram, expected}}};
}

static void option_limits(void) {
  hi = filled("Hi");
  tartlet_token unknown = 258, a = 65;
  tartlet_string nothing = T(""), x = T("x");
  tartlet_stop_conditions one = tartlet_max_tokens(1), with_token = one, with_string = one;
  with_token.tokens = (tartlet_list_token){&unknown, 1};
  with_string.strings = (tartlet_list_string){&nothing, 1};
  tartlet_list_token none_expected = {0};
  attempt_options("no tokens", tartlet_max_tokens(0), PLAIN);
  attempt_options("an unknown stop token", with_token, PLAIN);
  attempt_options("an empty stop string", with_string, PLAIN);
  attempt_options("21 log-probabilities", one, (tartlet_generation_options){.log_probabilities = {true, 21}});
  attempt_options("guesses of nothing", one, guesses(0, 3, none_expected));
  attempt_options("33 guesses", one, guesses(33, 3, none_expected));
  attempt_options("9-grams", one, guesses(8, 9, none_expected));
  attempt_options("an unknown expected token", one, guesses(8, 3, TOKENS(258)));
  tartlet_generation_options all = guesses(32, 8, TOKENS(65));
  all.streaming = true, all.chunk_interval_ns = MOST, all.log_probabilities = (tartlet_option_u32){true, 20};
  attempt_options("all of it", (tartlet_stop_conditions){{true, 1}, {&a, 1}, {&x, 1}, true}, all);
}

static tartlet_list_position_log_probabilities logprobs(bool is_asked, uint32_t number) {
  tartlet_generation_options options = {.log_probabilities = {is_asked, number}};
  return tartlet_generate_with(filled("Hi"), tartlet_greedy(), NO_STOP, options, NULL).log_probabilities;
}

static void log_probabilities(void) {
  tartlet_list_position_log_probabilities found = logprobs(true, 3);
  for (size_t i = 0; i < found.length; i++) {
    tartlet_position_log_probabilities each = found.data[i];
    SAY("chosen", num(each.chosen.token), real(each.chosen.log_probability));
    SAY("top", num(each.top.length), num(each.top.data[0].token), real(each.top.data[0].log_probability));
  }
  found = logprobs(true, 0);
  tartlet_string numbers[16];
  for (size_t i = 0; i < found.length; i++) numbers[i] = num(found.data[i].top.length);
  SAY("none but the chosen", list(numbers, found.length));
  SAY("not asked for", num(logprobs(false, 0).length));
}

static void streaming(void) {
  tartlet_generation running = start_stream(filled("Grüße 😀, 你好"));
  tartlet_draft all = {0};
  tartlet_finish finish = drain(&running, &all);
  SAY("text", str(all.text));
  SAY("tokens", nums(all.tokens));
  SAY("characters", num(characters(all.text)));
  tartlet_draft whole = generate(filled("Grüße 😀, 你好"));
  SAY("the draft has the same", flag(tartlet_is(whole.text, all.text.data)), flag(whole.tokens.length == all.tokens.length));
  SAY("finish", cstr(finish_name(finish.reason)));
}

static void failed(void) {
  tartlet_context context = filled("<|im_start|>user\nfail<|im_end|>");
  ATTEMPT("the engine's error", generate(context));
  ATTEMPT("the context is free", tartlet_fill(context, "x", &f));
  ATTEMPT("an empty context", generate(filled("")));
}

static void context_overflow(void) {
  tartlet_context context = filled(repeated("x", 2040).data);
  tartlet_draft draft = generate(context);
  SAY("up to the context length", num(draft.tokens.length), cstr(finish_name(draft.finish.reason)));
  ATTEMPT("no room", generate(context));
  SAY("room", num(tartlet_model_info(model()).context_length - tartlet_context_positions(context)));
}

static void sampler_values(void) {
  tartlet_context context = filled("Hi");
  tartlet_tuple_token_f32 bias = {65, -2};
  tartlet_sampling last = with(tartlet_seeded(tartlet_top_p(1, 0.5f), MOST), &bias, 1);
  last.repetition_penalty = 1.2f, last.presence_penalty = -0.5f;
  tartlet_sampling all[] = {tartlet_greedy(),        tartlet_temperature(0.7f),  tartlet_top_p(0.8f, 0.95f),
                            tartlet_top_k(40, 0.5f), tartlet_min_p(0.1f, 1.5f), last};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    SAY("text", str(tartlet_generate(tartlet_context_fork(context, NULL), all[i], NO_STOP, NULL).text));
}

static void print_text(void) {
  printf("one");
  printf(" two é 😀\n");
  printf("\n");
  tartlet_log_print(T("")); /* and past stdio */
  printf("three\nfour");
}

static void log_lines(void) {
  static const char *const names[] = {"trace", "debug", "info", "warn", "error"};
  for (int i = 0; i < 5; i++) tartlet_log((tartlet_level)i, "a line of level \"%s\" \\ é", names[i]);
  tartlet_log_log(TARTLET_LEVEL_INFO, T(""));
}

const test_case generation_cases[] = {
    {"generation.generate", generate_case},
    {"generation.generation.ready", ready},
    {"generation.generation.read", read_chunk},
    {"generation.generation.next", next_chunk},
    {"generation.generation.cancel", cancel},
    {"generation.stop", stop},
    {"generation.sampling-limits", sampling_limits},
    {"generation.option-limits", option_limits},
    {"generation.log-probabilities", log_probabilities},
    {"generation.streaming", streaming},
    {"generation.failed", failed},
    {"generation.context-overflow", context_overflow},
    {"generation.sampler-values", sampler_values},
    {"log.print", print_text},
    {"log.log", log_lines},
    {0},
};
