#ifndef PASSES_H
#define PASSES_H

#include "transcript.h"

/* Forward passes as cases ask for them: rows are those of the contract, 0 for the context's last token. */

/* Computes a pass, waits, and reads it; a failure is in `f`. */
tartlet_pass compute(tartlet_context context, tartlet_list_token tokens, tartlet_forward_options options,
                     tartlet_findings *found);
/* What a pass finds that is not kept. */
tartlet_findings look(tartlet_context context, tartlet_list_token tokens, tartlet_forward_options options);

tartlet_string reals(tartlet_list_f32 values);
tartlet_string first_logits(tartlet_row row, size_t from, size_t number);

/* The log-probability of each of a text's tokens, if it followed. */
tartlet_list_f32 line(tartlet_context context, const char *text);
/* The sum of that for each of several texts, which are computed as one tree. */
tartlet_string scores(tartlet_context context, const char *const *texts, size_t number);

#endif
