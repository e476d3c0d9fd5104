/* Generations, and what the program tells people. */
#include <math.h>
#include <stdio.h>

#include "transcript.h"

static void generate(void) {
  tartlet_context context = filled("Hello é");
  tartlet_draft draft = generated(context, 0);
  say_draft("draft", &draft);
  const tartlet_usage *usage = &draft.finish.usage;
  SAY("usage", whole(usage->prompt_tokens), whole(usage->cached_tokens), whole(usage->generated_tokens),
      whole(usage->forced_tokens));
  SAY("guesses", whole(usage->draft_tokens), whole(usage->accepted_tokens));
  SAY("pages", whole(usage->pages), whole(usage->shared_pages));
  SAY("times", yes(0 < usage->first_token_ns && usage->first_token_ns <= usage->total_ns));
  SAY("context", tokens_of(tartlet_context_tokens(context)));
  draft = generated(context, 3);
  say_draft("goes on", &draft);
}

static void ready(void) {
  tartlet_generation running = started(filled("Hello"), false);
  tartlet_event event = tartlet_generation_ready(running);
  SAY("the same at every call", yes(tartlet_generation_ready(running) == event));
  SAY("ready", yes(is_ready(event)));
  SAY("text", quoted(tartlet_generation_read(running, NULL).text));
}

static void read(void) {
  tartlet_generation running = started(filled("Hello"), false);
  tartlet_chunk early = tartlet_generation_read(running, NULL);
  SAY("not the end", yes(!early.finish.is_some), whole(early.log_probabilities.length));
  tartlet_wait_ready(tartlet_generation_ready(running));
  tartlet_chunk chunk = tartlet_generation_read(running, NULL);
  tartlet_token tokens[20];
  size_t number = 0;
  for (size_t i = 0; i < early.tokens.length; i++) tokens[number++] = early.tokens.data[i];
  for (size_t i = 0; i < chunk.tokens.length; i++) tokens[number++] = chunk.tokens.data[i];
  SAY("all", quoted(tartlet_format("%s%s", early.text.data, chunk.text.data)),
      tokens_of((tartlet_list_token){tokens, number}));
  const tartlet_finish *finish = &chunk.finish.value;
  SAY("finish", quoted_text(reason_name(finish->reason)), finish->stop_string.is_some ? "some" : none(),
      whole(finish->usage.generated_tokens));
  ATTEMPT("after the end", tartlet_generation_read(running, &refused));
}

static void next(void) {
  tartlet_generation running = started(filled("Hello"), true);
  tartlet_string text = S("");
  tartlet_chunk chunk = {0};
  while (!chunk.finish.is_some) {
    chunk = tartlet_generation_next(running, NULL);
    text = tartlet_format("%s%s", text.data, chunk.text.data);
  }
  SAY("text", quoted(text));
  ATTEMPT("after the end", tartlet_generation_next(running, &refused));
}

static void cancel(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = started(context, true);
  tartlet_chunk chunk;
  tartlet_stream_next(&running, &chunk, NULL);
  SAY("began", quoted((tartlet_string){chunk.text.data, 1}));
  tartlet_generation_cancel(running);
  tartlet_generation_cancel(running);
  tartlet_list_token kept = tartlet_context_tokens(context);
  size_t number = chunk.tokens.length;
  bool are_same = true;
  tartlet_finish_reason reason = TARTLET_FINISH_REASON_EOS;
  while (tartlet_stream_next(&running, &chunk, NULL)) {
    number += chunk.tokens.length;
    if (chunk.finish.is_some) reason = chunk.finish.value.reason;
  }
  kept = tartlet_context_tokens(context);
  for (size_t i = 7; i < kept.length; i++) are_same = are_same && kept.data[i] == '0' + (i - 7) % 10;
  SAY("finish", quoted_text(reason_name(reason)));
  SAY("less than all", yes(number < 1500));
  SAY("the context has them", yes(are_same && kept.length == 7 + number));
}

#define TEXTS(...) (tartlet_list_string){(tartlet_string[]){__VA_ARGS__}, sizeof((tartlet_string[]){__VA_ARGS__}) / sizeof(tartlet_string)}

static void stop(void) {
  tartlet_context context = filled("one two three");
  const struct {
    const char *label;
    tartlet_stop_conditions stop;
  } each[] = {
      {"length", {.max_tokens = {true, 4}}},
      {"string", {.strings = TEXTS(S("e t"), S("xyz"))}},
      {"token", {.tokens = TOKENS(119)}},
      {"first of several", {.max_tokens = {true, 6}, .strings = TEXTS(S("wo"), S("three"))}},
      {"ends with any", {.strings = TEXTS(S("ne")), .tokens = TOKENS(116)}},
      {"beyond eos", {.ignore_eos = true, .max_tokens = {true, 16}}},
  };
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    tartlet_draft draft = tartlet_generate(tartlet_context_fork(context, NULL), tartlet_greedy(), each[i].stop, NULL);
    say_draft(each[i].label, &draft);
  }
  tartlet_stop_conditions unknown = {.tokens = TOKENS(4294967295), .max_tokens = {true, 1}};
  ATTEMPT("no tokens at all",
          tartlet_generate(tartlet_context_fork(context, NULL), tartlet_greedy(), unknown, &refused));
}

static tartlet_context hi;

static void attempt_sampling(const char *label, tartlet_sampling sampling) {
  tartlet_stop_conditions one = tartlet_max_tokens(1);
  tartlet_generation_options options = {0};
  tartlet_generation running = tartlet_generation_generate(hi, &sampling, &one, &options, &refused);
  if (attempted(label, ok())) {
    SAY("generates", quoted(tartlet_generation_next(running, NULL).text));
    tartlet_generation_drop(running);
  }
}

#define BIASES(...) \
  {(tartlet_tuple_token_f32[]){__VA_ARGS__}, sizeof((tartlet_tuple_token_f32[]){__VA_ARGS__}) / sizeof(tartlet_tuple_token_f32)}
#define GREEDY .top_p = 1, .repetition_penalty = 1
#define SAMPLED .temperature = 1, .repetition_penalty = 1

static void sampling_limits(void) {
  hi = filled("Hi");
  attempt_sampling("largest seed",
                   (tartlet_sampling){.temperature = 0.5f, .top_k = 40, .top_p = 0.9f, .min_p = 0.05f,
                                      .repetition_penalty = 1.1f, .presence_penalty = 0.1f, .frequency_penalty = 0.1f,
                                      .logit_bias = BIASES({65, 1.5f}, {0, -100.0f}),
                                      .seed = {true, 18446744073709551615ull}});
  attempt_sampling("negative temperature", (tartlet_sampling){GREEDY, .temperature = -1});
  attempt_sampling("temperature is no number", (tartlet_sampling){GREEDY, .temperature = NAN});
  attempt_sampling("endless temperature", (tartlet_sampling){GREEDY, .temperature = INFINITY});
  attempt_sampling("top-p of zero", (tartlet_sampling){SAMPLED, .top_p = 0});
  attempt_sampling("top-p above one", (tartlet_sampling){SAMPLED, .top_p = 1.5f});
  attempt_sampling("min-p above one", (tartlet_sampling){SAMPLED, .top_p = 1, .min_p = 2});
  attempt_sampling("repetition penalty of zero", (tartlet_sampling){.temperature = 1, .top_p = 1});
  attempt_sampling("bias of an unknown token", (tartlet_sampling){GREEDY, .logit_bias = BIASES({258, 1})});
  attempt_sampling("bias is no number", (tartlet_sampling){GREEDY, .logit_bias = BIASES({65, NAN})});
  attempt_sampling("largest top-k", (tartlet_sampling){GREEDY, .top_k = 4294967295, .seed = {true, 0}});
}

static void attempt_options(const char *label, tartlet_stop_conditions stop, tartlet_generation_options options) {
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_generation running = tartlet_generation_generate(hi, &greedy, &stop, &options, &refused);
  if (attempted(label, ok())) {
    tartlet_string text = tartlet_generation_next(running, &refused).text;
    attempted("and then", refused.call ? NULL : quoted(text));
    tartlet_generation_drop(running);
  }
}

#define GUESSES(...) {.speculation = {true, {__VA_ARGS__}}}

static void option_limits(void) {
  hi = filled("Hi");
  tartlet_stop_conditions one = tartlet_max_tokens(1);
  tartlet_generation_options plain = {0};
  attempt_options("no tokens", tartlet_max_tokens(0), plain);
  attempt_options("an unknown stop token", (tartlet_stop_conditions){.max_tokens = {true, 1}, .tokens = TOKENS(258)}, plain);
  attempt_options("an empty stop string", (tartlet_stop_conditions){.max_tokens = {true, 1}, .strings = TEXTS(S(""))}, plain);
  attempt_options("21 log-probabilities", one, (tartlet_generation_options){.log_probabilities = {true, 21}});
  attempt_options("guesses of nothing", one, (tartlet_generation_options)GUESSES(0, 3));
  attempt_options("33 guesses", one, (tartlet_generation_options)GUESSES(33, 3));
  attempt_options("9-grams", one, (tartlet_generation_options)GUESSES(8, 9));
  attempt_options("an unknown expected token", one, (tartlet_generation_options)GUESSES(8, 3, TOKENS(258)));
  attempt_options("all of it",
                  (tartlet_stop_conditions){.max_tokens = {true, 1}, .tokens = TOKENS(65), .strings = TEXTS(S("x")),
                                            .ignore_eos = true},
                  (tartlet_generation_options){.streaming = true, .chunk_interval_ns = 18446744073709551615ull,
                                               .log_probabilities = {true, 20},
                                               .speculation = {true, {32, 8, TOKENS(65)}}});
}

static tartlet_list_position_log_probabilities positions(tartlet_option_u32 number) {
  tartlet_generation_options options = {.log_probabilities = number};
  return tartlet_generate_with(filled("Hi"), tartlet_greedy(), (tartlet_stop_conditions){0}, options, NULL)
      .log_probabilities;
}

static void log_probabilities(void) {
  tartlet_list_position_log_probabilities found = positions((tartlet_option_u32){true, 3});
  for (size_t i = 0; i < found.length; i++) {
    const tartlet_position_log_probabilities *each = &found.data[i];
    SAY("chosen", whole(each->chosen.token), bits(each->chosen.log_probability));
    SAY("top", whole(each->top.length), whole(each->top.data[0].token), bits(each->top.data[0].log_probability));
  }
  found = positions((tartlet_option_u32){true, 0});
  shown lengths[10];
  for (size_t i = 0; i < found.length; i++) lengths[i] = whole(found.data[i].top.length);
  SAY("none but the chosen", list_of(lengths, found.length));
  SAY("not asked for", whole(positions((tartlet_option_u32){0}).length));
}

static void streaming(void) {
  tartlet_generation running = started(filled("Grüße 😀, 你好"), true);
  tartlet_string text = S("");
  tartlet_token tokens[100];
  size_t number = 0, characters = 0;
  tartlet_finish_reason reason = TARTLET_FINISH_REASON_CANCELLED;
  tartlet_chunk chunk;
  while (tartlet_stream_next(&running, &chunk, NULL)) {
    text = tartlet_format("%s%s", text.data, chunk.text.data);
    for (size_t i = 0; i < chunk.text.length; i++) characters += (chunk.text.data[i] & 0xC0) != 0x80;
    for (size_t i = 0; i < chunk.tokens.length; i++) tokens[number++] = chunk.tokens.data[i];
    if (chunk.finish.is_some) reason = chunk.finish.value.reason;
  }
  SAY("text", quoted(text));
  SAY("tokens", tokens_of((tartlet_list_token){tokens, number}));
  SAY("characters", whole(characters));
  tartlet_draft draft = generated(filled("Grüße 😀, 你好"), 0);
  bool has_same = draft.tokens.length == number;
  for (size_t i = 0; has_same && i < number; i++) has_same = draft.tokens.data[i] == tokens[i];
  SAY("the draft has the same", yes(tartlet_is(draft.text, text.data)), yes(has_same));
  SAY("finish", quoted_text(reason_name(reason)));
}

static void failed(void) {
  tartlet_context context = filled("<|im_start|>user\nfail<|im_end|>");
  ATTEMPT("the engine's error", generated(context, 0));
  ATTEMPT("the context is free", tartlet_fill(context, "x", &refused));
  ATTEMPT("an empty context", generated(filled(""), 0));
}

static void context_overflow(void) {
  tartlet_context context = filled(repeated("x", 2040).data);
  tartlet_draft draft = generated(context, 0);
  SAY("up to the context length", whole(draft.tokens.length), quoted_text(reason_name(draft.finish.reason)));
  ATTEMPT("no room", generated(context, 0));
  SAY("room", whole(tartlet_model_info(model_of_host()).context_length - tartlet_context_positions(context)));
}

static void sampler_values(void) {
  tartlet_sampling last = tartlet_seeded(tartlet_top_p(1.0f, 0.5f), 18446744073709551615ull);
  last.repetition_penalty = 1.2f;
  last.presence_penalty = -0.5f;
  last.logit_bias = (tartlet_list_tuple_token_f32)BIASES({65, -2.0f});
  tartlet_sampling samplings[] = {tartlet_greedy(), tartlet_temperature(0.7f), tartlet_top_p(0.8f, 0.95f),
                                  tartlet_top_k(40, 0.5f), tartlet_min_p(0.1f, 1.5f), last};
  tartlet_context context = filled("Hi");
  for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
    tartlet_context fork = tartlet_context_fork(context, NULL);
    SAY("text", quoted(tartlet_generate(fork, samplings[i], (tartlet_stop_conditions){0}, NULL).text));
  }
}

static void print_text(void) {
  printf("one");
  printf(" two é 😀\n");
  puts("");
  tartlet_log_print(S("three\nfour"));
}

static void log_lines(void) {
  static const char *const names[] = {"trace", "debug", "info", "warn", "error"};
  for (int i = 0; i < 5; i++) tartlet_log((tartlet_level)i, "a line of level \"%s\" \\ é", names[i]);
  tartlet_log_log(TARTLET_LEVEL_INFO, S(""));
}

const test_case generation_cases[] = {
    {"generation.generate", generate},
    {"generation.generation.ready", ready},
    {"generation.generation.read", read},
    {"generation.generation.next", next},
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
