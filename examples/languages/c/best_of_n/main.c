/* Writes N candidates at once, all forked from one prompt, and lets the model choose among them by probability.
 *
 * With the same seed, these are the candidates and the choice of examples/best_of_n, which is in Python. */

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tartlet.h"

#define TASK "Write a catchy, on-brand email subject line for a 20%% off Fall skincare sale."

enum { MOST = 32, LISTED = 9 };

/* Without the spaces around it. */
static tartlet_string stripped(tartlet_string text) {
  while (text.length && isspace((unsigned char)text.data[0])) text.data++, text.length--;
  while (text.length && isspace((unsigned char)text.data[text.length - 1])) text.data[--text.length] = 0;
  return text;
}

/* Starts a judge, who is asked which candidate is the best. The list begins with candidate `first`. */
static tartlet_generation ask(tartlet_context context, const tartlet_string *candidates, size_t n, size_t first) {
  tartlet_string question = tartlet_format("Which of these is the best? Reply with its number only.");
  for (size_t place = 0; place < n && place < LISTED; place++)
    tartlet_append(&question, "\n%zu. %s", place + 1, candidates[(first + place) % n].data);
  tartlet_user(context, question.data, NULL);
  tartlet_context_cue(context, NULL);
  tartlet_fill(context, "The best is number ", NULL);

  tartlet_sampling sampling = tartlet_greedy();
  tartlet_stop_conditions stop = tartlet_max_tokens(1);
  tartlet_generation_options options = {.log_probabilities = {true, 20}};
  return tartlet_generation_generate(context, &sampling, &stop, &options, NULL);
}

/* Adds a judge's vote: the probability with which the model says each candidate's number. */
static void count(tartlet_model model, tartlet_draft verdict, double *votes, size_t n, size_t first) {
  tartlet_position_log_probabilities *answer = verdict.log_probabilities.data;
  for (size_t i = 0; i < answer->top.length; i++) {
    tartlet_list_token token = {&answer->top.data[i].token, 1};
    tartlet_string text = tartlet_model_detokenize(model, token, NULL);
    size_t place = text.length == 1 && isdigit((unsigned char)text.data[0]) ? (size_t)(text.data[0] - '0') : 0;
    if (place >= 1 && place <= n && place <= LISTED)
      votes[(first + place - 1) % n] += exp(answer->top.data[i].log_probability);
    tartlet_string_free(&text);
  }
}

tartlet_result run(tartlet_string input) {
  size_t n = (size_t)tartlet_json_number(input, "n", 5);
  tartlet_string task = tartlet_json_text(input, "task", "");
  if (!task.length) task = tartlet_format(TASK);
  if (n < 1 || n > MOST) return tartlet_failed("n is %zu, it can be 1 to %d", n, MOST);

  /* One context holds the prompt. Its forks share the pages of the KV cache: it is computed once, not n times. */
  tartlet_model model = tartlet_default_model(NULL);
  tartlet_context prompt = tartlet_new_context(model, NULL);
  tartlet_user(prompt, task.data, NULL);
  tartlet_flush(prompt, NULL);

  /* All candidates are started before the first is waited for, so the model writes them at once. */
  tartlet_string newline = tartlet_text("\n");
  tartlet_stop_conditions stop = {.max_tokens = {true, 64}, .strings = {&newline, 1}};
  tartlet_generation_options options = {0};
  tartlet_generation started[MOST];
  tartlet_string candidates[MOST];
  for (size_t k = 0; k < n; k++) {
    tartlet_sampling sampling = k % 2 ? tartlet_top_k(40, 1) : tartlet_top_p(0.7f, 0.95f);
    started[k] = tartlet_generation_generate(tartlet_context_fork(prompt, NULL), &sampling, &stop, &options, NULL);
  }
  for (size_t k = 0; k < n; k++) {
    candidates[k] = stripped(tartlet_finish_generation(started[k], NULL).text);
    printf("%5zu | %s\n", k + 1, candidates[k].data);
  }

  /* The order of a list sways who reads it. So there are n judges, and each candidate stands in each place before one. */
  double votes[MOST] = {0}, sum = 0;
  for (size_t k = 0; k < n; k++) started[k] = ask(tartlet_context_fork(prompt, NULL), candidates, n, k);
  for (size_t k = 0; k < n; k++) count(model, tartlet_finish_generation(started[k], NULL), votes, n, k);

  size_t best = 0;
  for (size_t k = 0; k < n; k++) sum += votes[k], best = votes[k] > votes[best] ? k : best;
  tartlet_string written = {0}, probabilities = {0};
  for (size_t k = 0; k < n; k++) {
    tartlet_append(&written, "%s%s", k ? ", " : "", tartlet_to_json(candidates[k]).data);
    tartlet_append(&probabilities, "%s%.3f", k ? ", " : "", votes[k] / (sum > 0 ? sum : 1));
  }
  return tartlet_ok("{\"best\": %s, \"candidates\": [%s], \"probabilities\": [%s]}",
                    tartlet_to_json(candidates[best]).data, written.data, probabilities.data);
}
