/* Grows a tree of texts: each is forked into some that go on differently, and all of a level are written at once. What a
 * text has in common with others is in the cache once. */

#include <stdio.h>
#include <stdlib.h>

#include "tartlet.h"

enum { MOST = 256, TOKENS = 6 };

tartlet_result run(tartlet_string input) {
  size_t branches = (size_t)tartlet_json_number(input, "branches", 2);
  size_t depth = (size_t)tartlet_json_number(input, "depth", 3);
  tartlet_string beginning = tartlet_json_text(input, "beginning", "Once upon a time");
  tartlet_context level[MOST], next[MOST];
  tartlet_generation started[MOST];
  size_t number = 1;

  level[0] = tartlet_new_context(tartlet_default_model(NULL), NULL);
  tartlet_fill(level[0], beginning.data, NULL);
  for (size_t each = 1; each <= depth; each++) {
    size_t grown = number * branches;
    if (grown > MOST) return tartlet_failed("level %zu has %zu texts, it can have %d", each, grown, MOST);
    tartlet_flush(level[0], NULL);
    tartlet_stop_conditions stop = tartlet_max_tokens(TOKENS);
    tartlet_generation_options options = {0};
    for (size_t k = 0; k < grown; k++) {
      tartlet_sampling sampling = tartlet_seeded(tartlet_temperature(0.9f), 1000 * each + k);
      next[k] = tartlet_context_fork(level[k / branches], NULL);
      started[k] = tartlet_generation_generate(next[k], &sampling, &stop, &options, NULL);
    }
    for (size_t k = 0; k < number; k++) tartlet_context_drop(level[k]);
    for (size_t k = 0; k < grown; k++) {
      tartlet_draft draft = tartlet_finish_generation(started[k], NULL);
      printf("%*s%zu.%zu %s\n", (int)(2 * each), "", each, k + 1, tartlet_to_json(draft.text).data);
      tartlet_draft_free(&draft);
      level[k] = next[k];
    }
    number = grown;
  }

  /* The tokens of all texts at the end, as one list of lists. */
  tartlet_string result = {0};
  for (size_t k = 0; k < number; k++) {
    tartlet_list_token tokens = tartlet_context_tokens(level[k]);
    for (size_t i = 0; i < tokens.length; i++) tartlet_append(&result, "%s%u", i ? ", " : k ? "], [" : "[", tokens.data[i]);
    tartlet_list_token_free(&tokens);
  }
  return tartlet_ok("[%s]]", result.data);
}
