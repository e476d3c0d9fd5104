/* The last part of a matrix product, with the sums still in registers. */

#ifndef TARTLET_LINEAR_OUTPUT_H
#define TARTLET_LINEAR_OUTPUT_H

#include "common.h"
#include "vector.h"

enum { MAX_ROWS = 12 };

/* gate / (1 + e ** -gate) */
INLINE vec16 silu(vec16 gate)
{
    vec16 exponential = vec_exp(vec_sub(vec_zero(), gate));
    return vec_div(gate, vec_add(vec_set(1.0f), exponential));
}

/* Write the sums of one panel: stored, added to what is there, or as silu(first half) * second half. */
INLINE void write_sums(const int num_rows, vec16 sums[MAX_ROWS][2], const linear_panel *panel,
                       const linear_output *output)
{
    const int first_output = panel->panel_index * PANEL_OUTPUTS;
    if (panel->bias) {
        vec16 first = vec_load(panel->bias + first_output), second = vec_load(panel->bias + first_output + 16);
        UNROLL for (int row = 0; row < num_rows; row++)
        {
            sums[row][0] = vec_add(sums[row][0], first);
            sums[row][1] = vec_add(sums[row][1], second);
        }
    }
    if (output->mode == TARTLET_GATE) {
        UNROLL for (int row = 0; row < num_rows; row++)
        {
            size_t index = (size_t)row * (panel->num_outputs / 2) + first_output / 2;
            elements_store(output->kind, output->gated, index, vec_mul(silu(sums[row][0]), sums[row][1]));
        }
        return;
    }
    const int is_added = output->mode == TARTLET_ADD;
    UNROLL for (int row = 0; row < num_rows; row++)
    {
        float *target = output->floats + (size_t)row * panel->num_outputs + first_output;
        UNROLL for (int half = 0; half < 2; half++)
        {
            vec16 sum = sums[row][half];
            if (is_added)
                sum = vec_add(sum, vec_load(target + 16 * half));
            vec_store(target + 16 * half, sum);
        }
    }
}

/* Calls `CALL(n)` with the constant n that num_rows is. */
#define WITH_CONSTANT_ROWS(num_rows, CALL) \
    switch (num_rows) {                    \
    case 1: CALL(1); break;                \
    case 2: CALL(2); break;                \
    case 3: CALL(3); break;                \
    case 4: CALL(4); break;                \
    case 5: CALL(5); break;                \
    case 6: CALL(6); break;                \
    case 7: CALL(7); break;                \
    case 8: CALL(8); break;                \
    case 9: CALL(9); break;                \
    case 10: CALL(10); break;              \
    case 11: CALL(11); break;              \
    case 12: CALL(12); break;              \
    }

#endif
