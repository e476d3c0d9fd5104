/* Matrix product with int8 or int4 weights in groups of 32 inputs: one panel of 32 outputs for some rows.
 *
 * Inputs are not quantised. Within a group the products of inputs and whole numbers are summed in one accumulator; then
 *
 *     total += group sum * scale                                        int8
 *     total += minimum * sum of the group's inputs, + group sum * scale  int4
 *
 * in float32. As in linear_dense.c, a row's sums do not depend on the rows beside it.
 *
 * Unpacking costs about as much as two rows, so a block has many rows, and half a panel at a time, to leave registers
 * for the totals. (Unpacking a panel once for all blocks, into the cache, was slower than doing it again for each.) */

#include "common.h"
#include "group_layout.h"
#include "linear_output.h"
#include "vector.h"

enum { GROUPS_AHEAD = 4 };

INLINE void prefetch_group(const int format, const uint8_t *group)
{
    const char *ahead = (const char *)group + GROUPS_AHEAD * group_bytes(format);
    _Pragma("GCC unroll 17") for (int offset = 0; offset < group_bytes(format); offset += 64)
        _mm_prefetch(ahead + offset, _MM_HINT_T0);
}

/* Add a finished group to the rows' totals, for one half of the panel. */
INLINE void add_group(const int format, const int num_rows, vec16 totals[MAX_ROWS][2], vec16 sums[MAX_ROWS][2], int half,
                      const uint8_t *group, const float *input_sums, int num_groups)
{
    vec16 scale = vec_load_half(group_scales(format, group, half));
    if (format == TARTLET_INT4) {
        vec16 minimum = vec_load_half(group_minima(group, half));
        UNROLL for (int row = 0; row < num_rows; row++)
            totals[row][half] = vec_fma(minimum, vec_set(input_sums[row * num_groups]), totals[row][half]);
    }
    UNROLL for (int row = 0; row < num_rows; row++)
        totals[row][half] = vec_fma(sums[row][half], scale, totals[row][half]);
}

INLINE void grouped_rows(const int format, const int num_rows, const linear_panel *panel, const uint8_t *inputs,
                         const float *input_sums, const linear_output *output)
{
    const int num_groups = panel->num_inputs / GROUP_INPUTS;
    const size_t row_bytes = (size_t)panel->num_inputs * PAIR_ELEMENT_BYTES;
    const int halves_at_once = num_rows > MAX_GROUPED_ROWS / 2 ? 1 : HALVES_AT_ONCE;
    vec16 totals[MAX_ROWS][2];
    UNROLL for (int first = 0; first < 2; first += halves_at_once)
    {
        UNROLL for (int row = 0; row < num_rows; row++)
            UNROLL for (int half = first; half < first + halves_at_once; half++) totals[row][half] = vec_zero();
        const uint8_t *group = panel->panel;
        for (int g = 0; g < num_groups; g++, group += group_bytes(format)) {
            vec16 sums[MAX_ROWS][2];
            UNROLL for (int row = 0; row < num_rows; row++)
                UNROLL for (int half = first; half < first + halves_at_once; half++) sums[row][half] = vec_zero();
            if (num_rows <= 2)
                prefetch_group(format, group);
            UNROLL for (int pair = 0; pair < GROUP_PAIRS; pair++)
            {
                const int step = g * GROUP_PAIRS + pair;
                UNROLL for (int half = first; half < first + halves_at_once; half++)
                {
                    step16 numbers = group_step(format, group, half, pair);
                    UNROLL for (int row = 0; row < num_rows; row++) sums[row][half] =
                        step_add(KIND_BFLOAT16, sums[row][half], numbers, inputs + row * row_bytes, step);
                }
            }
            UNROLL for (int half = first; half < first + halves_at_once; half++)
                add_group(format, num_rows, totals, sums, half, group, input_sums + g, num_groups);
        }
    }
    write_sums(num_rows, totals, panel, output);
}

int tartlet_max_grouped_rows(void) { return MAX_GROUPED_ROWS; }

#define INT8_ROWS(n)           \
    if (n <= MAX_GROUPED_ROWS) \
    grouped_rows(TARTLET_INT8, n, panel, inputs, input_sums, output)
#define INT4_ROWS(n)           \
    if (n <= MAX_GROUPED_ROWS) \
    grouped_rows(TARTLET_INT4, n, panel, inputs, input_sums, output)

static __attribute__((noinline)) void int8_rows(int num_rows, const linear_panel *panel, const void *inputs,
                                                const float *input_sums, const linear_output *output)
{
    WITH_CONSTANT_ROWS(num_rows, INT8_ROWS)
}

static __attribute__((noinline)) void int4_rows(int num_rows, const linear_panel *panel, const void *inputs,
                                                const float *input_sums, const linear_output *output)
{
    WITH_CONSTANT_ROWS(num_rows, INT4_ROWS)
}

/* `input_sums` is float[rows, K / 32]; only int4 reads it. */
void tartlet_grouped_rows(int format, int num_rows, const linear_panel *panel, const void *inputs,
                          const float *input_sums, const linear_output *output)
{
    if (format == TARTLET_INT8)
        int8_rows(num_rows, panel, inputs, input_sums, output);
    else
        int4_rows(num_rows, panel, inputs, input_sums, output);
}

/* Sum the inputs of each group of one row. */
void tartlet_sum_groups(const void *inputs, int num_inputs, float *sums)
{
    for (int first = 0; first < num_inputs; first += GROUP_INPUTS)
        sums[first / GROUP_INPUTS] = vec_sum(
            vec_add(pair_elements_load(inputs, (size_t)first), pair_elements_load(inputs, (size_t)first + 16)));
}
