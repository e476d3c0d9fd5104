/* Trees of forks. */
#include "transcript.h"

#define DEPTH 5
#define LEAVES (1 << DEPTH)

static void binary(void) {
  tartlet_context tree[2 * LEAVES];
  tree[1] = filled("root:");
  for (int i = 1; i < LEAVES; i++) {
    for (int side = 0; side < 2; side++) {
      tree[2 * i + side] = tartlet_context_fork(tree[i], NULL);
      tartlet_fill(tree[2 * i + side], side ? "r" : "l", NULL);
    }
  }
  tartlet_generation running[LEAVES];
  shown texts[LEAVES];
  for (int i = 0; i < LEAVES; i++) running[i] = started(tree[LEAVES + i], false);
  for (int i = 0; i < LEAVES; i++) texts[i] = quoted(tartlet_finish_generation(running[i], NULL).text);
  SAY("leaves", list_of(texts, LEAVES));
}

static void chain(void) {
  tartlet_context context = filled("0");
  for (int i = 1; i < 100; i++) {
    tartlet_context child = tartlet_context_fork(context, NULL);
    tartlet_fill(child, tartlet_format("%d", i % 10).data, NULL);
    tartlet_context_drop(context);
    context = child;
  }
  tartlet_draft draft = generated(context, 5);
  SAY("length", whole(tartlet_context_length(context)), quoted(draft.text));
}

static void parents_go_first(void) {
  tartlet_context parent = filled(repeated("0123456789abcdef", 4).data), children[8];
  tartlet_flush(parent, NULL);
  for (int i = 0; i < 8; i++) children[i] = tartlet_context_fork(parent, NULL);
  tartlet_context_drop(parent);
  tartlet_context_truncate(children[0], 3, NULL);
  tartlet_fill(children[1], "!", NULL);
  tartlet_generation running[8];
  tartlet_draft drafts[8];
  shown cached[8], lengths[8];
  tartlet_sampling greedy = tartlet_greedy();
  tartlet_stop_conditions two = tartlet_max_tokens(2);
  tartlet_generation_options options = {0};
  for (int i = 0; i < 8; i++) running[i] = tartlet_generation_generate(children[i], &greedy, &two, &options, NULL);
  for (int i = 0; i < 8; i++) drafts[i] = tartlet_finish_generation(running[i], NULL);
  for (int i = 0; i < 8; i++) {
    cached[i] = whole(drafts[i].finish.usage.cached_tokens);
    lengths[i] = whole(tartlet_context_length(children[i]));
  }
  SAY("cached", list_of(cached, 8));
  SAY("lengths", list_of(lengths, 8));
  SAY("shared", whole(drafts[2].finish.usage.pages), whole(drafts[2].finish.usage.shared_pages));
}

static bool begin_alike(tartlet_context one, tartlet_context other, size_t number) {
  tartlet_list_token left = tartlet_context_tokens(one), right = tartlet_context_tokens(other);
  return __builtin_memcmp(left.data, right.data, number * sizeof(tartlet_token)) == 0;
}

static void while_generating(void) {
  tartlet_context context = filled("endless");
  tartlet_generation running = started(context, true);
  tartlet_chunk chunk;
  tartlet_stream_next(&running, &chunk, NULL);
  tartlet_context child = tartlet_context_fork(context, NULL);
  SAY("has what is there", yes(tartlet_context_length(child) > 7), yes(begin_alike(child, context, 7)));
  tartlet_generation_cancel(running);
  while (tartlet_stream_next(&running, &chunk, NULL)) continue;
  tartlet_context_truncate(child, 7, NULL);
  SAY("its own", yes(tartlet_context_length(child) == 7 && begin_alike(child, context, 7)));
}

const test_case tree_cases[] = {
    {"trees.binary", binary},
    {"trees.chain", chain},
    {"trees.parents-go-first", parents_go_first},
    {"trees.while-generating", while_generating},
    {0},
};
