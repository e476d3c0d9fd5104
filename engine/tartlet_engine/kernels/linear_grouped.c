/* Matrix product with int8 or int4 weights in groups of 32 inputs: one panel of 32 outputs for some rows.
 *
 * Inputs are not quantised. Within a group the products of inputs and whole numbers are summed in one accumulator; then
 *
 *     total += group sum * scale                                        int8
 *     total += minimum * sum of the group's inputs, + group sum * scale  int4
 *
 * in float32. Both ways to the numbers, unpacked in registers for a few rows or read from a panel that was unpacked once
 * for all of them, give the same steps in the same order, and so the same bits. */

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

INLINE void grouped_rows(const int format, const int is_unpacked, const int num_rows, const linear_panel *panel,
                         const uint8_t *inputs, const float *input_sums, const uint8_t *unpacked,
                         const linear_output *output)
{
    const int num_groups = panel->num_inputs / GROUP_INPUTS;
    const size_t row_bytes = (size_t)panel->num_inputs * PAIR_ELEMENT_BYTES;
    vec16 totals[MAX_ROWS][2];
    UNROLL for (int first = 0; first < 2; first += HALVES_AT_ONCE)
    {
        UNROLL for (int row = 0; row < num_rows; row++)
            UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++) totals[row][half] = vec_zero();
        const uint8_t *group = panel->panel;
        for (int g = 0; g < num_groups; g++, group += group_bytes(format)) {
            vec16 sums[MAX_ROWS][2];
            UNROLL for (int row = 0; row < num_rows; row++)
                UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++) sums[row][half] = vec_zero();
            if (num_rows <= 2 && !is_unpacked)
                prefetch_group(format, group);
            UNROLL for (int pair = 0; pair < GROUP_PAIRS; pair++)
            {
                const int step = g * GROUP_PAIRS + pair;
                UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++)
                {
                    step16 numbers = is_unpacked ? step_load(KIND_BFLOAT16, unpacked + 128 * step + 64 * half)
                                                 : group_step(format, group, half, pair);
                    UNROLL for (int row = 0; row < num_rows; row++) sums[row][half] =
                        step_add(KIND_BFLOAT16, sums[row][half], numbers, inputs + row * row_bytes, step);
                }
            }
            UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++)
                add_group(format, num_rows, totals, sums, half, group, input_sums + g, num_groups);
        }
    }
    write_sums(num_rows, totals, panel, output);
}

int tartlet_max_grouped_rows(void) { return MAX_GROUPED_ROWS; }

#define ROWS(format, is_unpacked, n) \
    if (n <= MAX_GROUPED_ROWS)       \
    grouped_rows(format, is_unpacked, n, panel, inputs, input_sums, unpacked, output)
#define PACKED_INT8(n) ROWS(TARTLET_INT8, 0, n)
#define PACKED_INT4(n) ROWS(TARTLET_INT4, 0, n)
#define UNPACKED_INT8(n) ROWS(TARTLET_INT8, 1, n)
#define UNPACKED_INT4(n) ROWS(TARTLET_INT4, 1, n)

#define DEFINE_ROWS(name, CALL)                                                                                      \
    static __attribute__((noinline)) void name(int num_rows, const linear_panel *panel, const void *inputs,          \
                                               const float *input_sums, const void *unpacked,                        \
                                               const linear_output *output)                                          \
    {                                                                                                                \
        WITH_CONSTANT_ROWS(num_rows, CALL)                                                                           \
    }

DEFINE_ROWS(packed_int8_rows, PACKED_INT8)
DEFINE_ROWS(packed_int4_rows, PACKED_INT4)
DEFINE_ROWS(unpacked_int8_rows, UNPACKED_INT8)
DEFINE_ROWS(unpacked_int4_rows, UNPACKED_INT4)

/* `unpacked` is what tartlet_unpack_panel() made of the panel, or NULL; `input_sums` is float[rows, K / 32]. */
void tartlet_grouped_rows(int format, int num_rows, const linear_panel *panel, const void *inputs,
                          const float *input_sums, const void *unpacked, const linear_output *output)
{
    if (format == TARTLET_INT8)
        (unpacked ? unpacked_int8_rows : packed_int8_rows)(num_rows, panel, inputs, input_sums, unpacked, output);
    else
        (unpacked ? unpacked_int4_rows : packed_int4_rows)(num_rows, panel, inputs, input_sums, unpacked, output);
}

INLINE void unpack_panel(const int format, const linear_panel *panel, uint8_t *unpacked)
{
    const uint8_t *group = panel->panel;
    for (int first = 0; first < panel->num_inputs; first += GROUP_INPUTS, group += group_bytes(format))
        UNROLL for (int pair = 0; pair < GROUP_PAIRS; pair++)
            UNROLL for (int half = 0; half < 2; half++, unpacked += 64)
                step_store_pairs(unpacked, group_step(format, group, half, pair));
}

/* Write the panel's numbers as linear_dense.c has them in bfloat16: 64 * K bytes. */
void tartlet_unpack_panel(int format, const linear_panel *panel, void *unpacked)
{
    if (format == TARTLET_INT8)
        unpack_panel(TARTLET_INT8, panel, unpacked);
    else
        unpack_panel(TARTLET_INT4, panel, unpacked);
}

/* Sum the inputs of each group of one row. */
void tartlet_sum_groups(const void *inputs, int num_inputs, float *sums)
{
    for (int first = 0; first < num_inputs; first += GROUP_INPUTS)
        sums[first / GROUP_INPUTS] = vec_sum(
            vec_add(pair_elements_load(inputs, (size_t)first), pair_elements_load(inputs, (size_t)first + 16)));
}
