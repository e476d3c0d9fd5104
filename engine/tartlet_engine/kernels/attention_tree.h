/* What a row of a tree sees (interface.h draws it), and how attention leaves out the rest.
 *
 * The tail's factors, PAGE_SIZE for each page that it touches, are 1 for the slots that the row sees and 0 for the
 * others. These may hold anything, also what is no number: their scores are overwritten, and their values are read from
 * copies of the tail's pages in which they are zero. */

#ifndef TARTLET_ATTENTION_TREE_H
#define TARTLET_ATTENTION_TREE_H

#include <limits.h>

#include "common.h"
#include "vector.h"

/* Tell from which slot to which one the row sees, and fill the factors of its tail. A sliding window leaves the last
 * ones of what it sees. */
static void tree_look(const tartlet_segment *tree, int row, int window, float *factors, int *begin, int *end)
{
    const uint8_t *visible = tree->visible + (size_t)(row - tree->first_row) * tree->tail_len;
    const int before = tree->tail_start % PAGE_SIZE; /* slots of the tail's first page that are no part of it */
    int num_left = window ? window : INT_MAX;
    *end = tree->tail_start;
    memset(factors, 0, (size_t)round_up(before + tree->tail_len, PAGE_SIZE) * sizeof(float));
    for (int i = 0; i < before; i++)
        factors[i] = 1.0f;
    for (int i = tree->tail_len - 1; i >= 0 && num_left > 0; i--) {
        if (!visible[i])
            continue;
        num_left--;
        factors[before + i] = 1.0f;
        if (*end <= tree->tail_start + i)
            *end = tree->tail_start + i + 1;
    }
    *begin = num_left < tree->tail_start ? tree->tail_start - num_left : 0;
}

/* Overwrite the scores of slots that are not seen. `scores` are those of the tail's pages, up to `num_slots`. */
static void tree_hide_scores(const float *factors, int num_slots, float lowest, float *scores)
{
    for (int slot = 0; slot < num_slots; slot++)
        if (factors[slot] == 0.0f)
            scores[slot] = lowest;
}

/* Copy a page's values, as heads.c lays them out, with zeros for the slots that are not seen. */
static void tree_copy_values(int kind, const uint8_t *block, int dim, const float *factors, uint8_t *copy)
{
    const int depth = step_depth(kind);
    for (int slot = 0; slot < PAGE_SIZE; slot += depth) {
        uint32_t kept = factors[slot] != 0.0f ? 0xFFFFFFFF : 0;
        if (kind == KIND_BFLOAT16)
            kept = (kept & 0xFFFF) | (factors[slot + 1] != 0.0f ? 0xFFFF0000 : 0);
        const uint32_t *from = (const uint32_t *)block + (size_t)slot / depth * dim;
        uint32_t *to = (uint32_t *)copy + (size_t)slot / depth * dim;
        for (int d = 0; d < dim; d++)
            to[d] = from[d] & kept;
    }
}

#endif
