/* Trees of forks. */

#include "transcript.h"

static tartlet_context grown(tartlet_context parent, const char *text) {
  tartlet_context child = tartlet_context_fork(parent, NULL);
  tartlet_fill(child, text, NULL);
  return child;
}

static void binary(void) {
  tartlet_context level[32] = {filled("root:")};
  for (size_t width = 1; width < 32; width *= 2)
    for (size_t i = width; i-- > 0;) {
      tartlet_context parent = level[i];
      level[2 * i] = grown(parent, "l");
      level[2 * i + 1] = grown(parent, "r");
    }
  tartlet_generation started[32];
  tartlet_string texts[32];
  for (int i = 0; i < 32; i++) started[i] = start_generation(level[i]);
  for (int i = 0; i < 32; i++) texts[i] = str(tartlet_finish_generation(started[i], NULL).text);
  SAY("leaves", list(texts, 32));
}

static void chain(void) {
  tartlet_context context = filled("0");
  for (int i = 1; i < 100; i++) {
    tartlet_context child = grown(context, tartlet_format("%d", i % 10).data);
    tartlet_context_drop(context);
    context = child;
  }
  tartlet_draft draft = generate_some(context, 5);
  SAY("length", num(tartlet_context_length(context)), str(draft.text));
}

static void parents_go_first(void) {
  tartlet_context parent = filled(repeated("0123456789abcdef", 4).data), children[8];
  tartlet_flush(parent, NULL);
  for (int i = 0; i < 8; i++) children[i] = tartlet_context_fork(parent, NULL);
  tartlet_context_drop(parent);
  tartlet_context_truncate(children[0], 3, NULL);
  tartlet_fill(children[1], "!", NULL);
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_stop_conditions two = tartlet_max_tokens(2);
  tartlet_generation started[8];
  tartlet_usage usages[8];
  tartlet_string cached[8], lengths[8];
  for (int i = 0; i < 8; i++) started[i] = tartlet_generation_generate(children[i], &greedy, &two, &PLAIN, NULL);
  for (int i = 0; i < 8; i++) usages[i] = tartlet_finish_generation(started[i], NULL).finish.usage;
  for (int i = 0; i < 8; i++) {
    cached[i] = num(usages[i].cached_tokens);
    lengths[i] = num(tartlet_context_length(children[i]));
  }
  SAY("cached", list(cached, 8));
  SAY("lengths", list(lengths, 8));
  SAY("shared", num(usages[2].pages), num(usages[2].shared_pages));
}

static bool begin_alike(tartlet_context one, tartlet_context other, size_t number) {
  return !memcmp(tartlet_context_tokens(one).data, tartlet_context_tokens(other).data, number * sizeof(tartlet_token));
}

static void while_generating(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = start_stream(context);
  tartlet_draft rest = {0};
  tartlet_chunk chunk;
  do tartlet_stream_next(&running, &chunk, NULL);
  while (!chunk.tokens.length);
  tartlet_context child = tartlet_context_fork(context, NULL);
  SAY("has what is there", flag(tartlet_context_length(child) > 7), flag(begin_alike(child, context, 7)));
  tartlet_generation_cancel(running);
  drain(&running, &rest);
  tartlet_context_truncate(child, 7, NULL);
  SAY("its own", flag(begin_alike(child, context, 7)));
}

const test_case tree_cases[] = {
    {"trees.binary", binary},
    {"trees.chain", chain},
    {"trees.parents-go-first", parents_go_first},
    {"trees.while-generating", while_generating},
    {0},
};
