/* Matrix product with float32 or bfloat16 weights: one panel of 32 outputs for some rows.
 *
 * A panel lies in memory as it is read, front to back: for every step (1 input in float32, 2 in bfloat16) the 64 bytes
 * of outputs 0 to 15, then those of outputs 16 to 31:
 *
 *     step 0: [o 0..15][o 16..31]   step 1: [o 0..15][o 16..31]   ...
 *
 * A row's sum takes the inputs in order, in one accumulator per output. So it does not depend on which rows are computed
 * with it: a row alone and the same row in a batch give the same bits. (Two accumulators would be faster for one row
 * in cache, but weights come from memory, which is slower still.) */

#include "common.h"
#include "linear_output.h"
#include "vector.h"

enum { PREFETCH_BYTES = 2048 };

INLINE void dense_rows(const int kind, const int num_rows, const linear_panel *panel, const uint8_t *inputs,
                       const linear_output *output)
{
    const int num_steps = panel->num_inputs / step_depth(kind);
    const size_t row_bytes = (size_t)panel->num_inputs * element_bytes(kind);
    vec16 sums[MAX_ROWS][2];
    UNROLL for (int first = 0; first < 2; first += HALVES_AT_ONCE)
    {
        UNROLL for (int row = 0; row < num_rows; row++)
            UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++) sums[row][half] = vec_zero();
        const uint8_t *weights = panel->panel;
        _Pragma("GCC unroll 2") for (int step = 0; step < num_steps; step++, weights += 128)
        {
            step16 loaded[2];
            UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++)
                loaded[half] = step_load(kind, weights + 64 * half);
            if (num_rows <= 2) {
                _mm_prefetch((const char *)weights + PREFETCH_BYTES, _MM_HINT_T0);
                _mm_prefetch((const char *)weights + PREFETCH_BYTES + 64, _MM_HINT_T0);
            }
            UNROLL for (int row = 0; row < num_rows; row++)
                UNROLL for (int half = first; half < first + HALVES_AT_ONCE; half++)
                    sums[row][half] = step_add(kind, sums[row][half], loaded[half], inputs + row * row_bytes, step);
        }
    }
    write_sums(num_rows, sums, panel, output);
}

int tartlet_max_dense_rows(void) { return MAX_DENSE_ROWS; }

#define FLOAT32_ROWS(n)      \
    if (n <= MAX_DENSE_ROWS) \
    dense_rows(KIND_FLOAT32, n, panel, inputs, output)
#define BFLOAT16_ROWS(n)     \
    if (n <= MAX_DENSE_ROWS) \
    dense_rows(KIND_BFLOAT16, n, panel, inputs, output)

static __attribute__((noinline)) void float32_rows(int num_rows, const linear_panel *panel, const void *inputs,
                                                   const linear_output *output)
{
    WITH_CONSTANT_ROWS(num_rows, FLOAT32_ROWS)
}

static __attribute__((noinline)) void bfloat16_rows(int num_rows, const linear_panel *panel, const void *inputs,
                                                    const linear_output *output)
{
    WITH_CONSTANT_ROWS(num_rows, BFLOAT16_ROWS)
}

void tartlet_dense_rows(int kind, int num_rows, const linear_panel *panel, const void *inputs,
                        const linear_output *output)
{
    if (kind == KIND_FLOAT32)
        float32_rows(num_rows, panel, inputs, output);
    else
        bfloat16_rows(num_rows, panel, inputs, output);
}
