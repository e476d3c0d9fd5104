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

tartlet_string score(tartlet_context context, const char *text) {
  tartlet_list_f32 all = line(context, text);
  double sum = 0;
  for (size_t i = 0; i < all.length; i++) sum += all.data[i];
  return real((float)sum);
}
