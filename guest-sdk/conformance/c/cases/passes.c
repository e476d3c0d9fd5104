#include "passes.h"

tartlet_pass compute(tartlet_context context, tartlet_list_token tokens, tartlet_forward_options options,
                     tartlet_findings *found) {
  tartlet_pass pass = tartlet_forward_forward(context, tokens, &options, &f);
  *found = tartlet_pass_wait(pass, &f);
  return pass;
}

tartlet_findings look(tartlet_context context, tartlet_list_token tokens, tartlet_forward_options options) {
  tartlet_findings found;
  tartlet_pass pass = compute(context, tokens, options, &found);
  if (pass.handle) tartlet_pass_drop(pass);
  return found;
}

tartlet_string reals(tartlet_list_f32 values) {
  tartlet_string *all = tartlet_new(values.length * sizeof *all);
  for (size_t i = 0; i < values.length; i++) all[i] = real(values.data[i]);
  return list(all, values.length);
}

tartlet_string first_logits(tartlet_row row, size_t from, size_t number) {
  return reals((tartlet_list_f32){(float *)row.logits.data + from, row.logits.length ? number : 0});
}

tartlet_list_f32 line(tartlet_context context, const char *text) {
  tartlet_list_token tokens = tartlet_model_tokenize(model(), T(text), NULL);
  size_t known = tokens.length - 1; /* before the last token is computed */
  tartlet_request last = {.row = (uint32_t)known, .given = {tokens.data + known, 1}};
  tartlet_findings found = look(context, (tartlet_list_token){tokens.data, known},
                                (tartlet_forward_options){.log_probabilities = true, .requests = {&last, 1}});
  tartlet_list_f32 all = {tartlet_new(tokens.length * sizeof(float)), tokens.length};
  memcpy(all.data, found.log_probabilities.data, known * sizeof(float));
  all.data[known] = found.rows.data[0].given.data[0];
  return all;
}

enum { MOST_NODES = 64, MOST_WANTED = 16 };

/* A tree of tokens: row 0 is the context's last token, each other row a token that follows its parent's row. */
typedef struct {
  size_t num_nodes;
  tartlet_token tokens[MOST_NODES];
  uint32_t parents[MOST_NODES];
  tartlet_token wanted[MOST_NODES + 1][MOST_WANTED]; /* by row: tokens whose log-probability after it is wanted */
  size_t num_wanted[MOST_NODES + 1];
} tree;

static size_t place_of(tree *it, uint32_t row, tartlet_token token) {
  size_t place = 0;
  while (place < it->num_wanted[row] && it->wanted[row][place] != token) place++;
  if (place == it->num_wanted[row]) it->wanted[row][it->num_wanted[row]++] = token;
  return place;
}

static uint32_t child_of(tree *it, uint32_t row, tartlet_token token) {
  for (uint32_t i = 0; i < it->num_nodes; i++)
    if (it->parents[i] == row && it->tokens[i] == token) return i + 1;
  it->parents[it->num_nodes] = row;
  it->tokens[it->num_nodes++] = token;
  return (uint32_t)it->num_nodes;
}

tartlet_string scores(tartlet_context context, const char *const *texts, size_t number) {
  tree it = {0};
  tartlet_request asked[MOST_NODES + 1];
  tartlet_string totals[8];
  for (size_t i = 0; i < number; i++) {
    tartlet_list_token text = tartlet_model_tokenize(model(), T(texts[i]), NULL);
    uint32_t row = 0;
    for (size_t k = 0; k < text.length; k++) {
      place_of(&it, row, text.data[k]);
      if (k + 1 < text.length) row = child_of(&it, row, text.data[k]);
    }
  }
  for (uint32_t row = 0; row <= it.num_nodes; row++)
    asked[row] = (tartlet_request){.row = row, .given = {it.wanted[row], it.num_wanted[row]}};
  tartlet_forward_options options = {.parents = {true, {it.parents, it.num_nodes}},
                                     .requests = {asked, it.num_nodes + 1}};
  tartlet_findings found = look(context, (tartlet_list_token){it.tokens, it.num_nodes}, options);
  for (size_t i = 0; i < number; i++) {
    tartlet_list_token text = tartlet_model_tokenize(model(), T(texts[i]), NULL);
    uint32_t row = 0;
    double total = 0;
    for (size_t k = 0; k < text.length; k++) {
      total += found.rows.data[row].given.data[place_of(&it, row, text.data[k])];
      if (k + 1 < text.length) row = child_of(&it, row, text.data[k]);
    }
    totals[i] = real((float)total);
  }
  return list(totals, number);
}
