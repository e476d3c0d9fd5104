/* Matrix products of a step: rows of inputs times a packed matrix, in blocks that fit registers and caches.
 *
 * Threads share out the panels, so no sum is ever split between threads. */

#include "common.h"
#include "group_layout.h"
#include "vector.h"

/* Rows whose inputs stay in the L2 cache while panels go by. Up to MAX_ROWS_AT_ONCE are not divided. */
enum { TILE_ROWS = 96, MAX_ROWS_AT_ONCE = 128 };

int tartlet_kind(int format) { return format == TARTLET_FLOAT32 ? KIND_FLOAT32 : KIND_BFLOAT16; }

static int is_grouped(int format) { return format == TARTLET_INT8 || format == TARTLET_INT4; }

size_t tartlet_panel_bytes(int format, int num_inputs)
{
    if (is_grouped(format))
        return (size_t)(num_inputs / GROUP_INPUTS) * group_bytes(format);
    return (size_t)num_inputs * PANEL_OUTPUTS * kv_bytes(tartlet_kind(format));
}

/* Scratch of one thread: the sums of the groups of all rows' inputs. */
size_t tartlet_linear_scratch_floats(const tartlet_matrix *matrix, int num_rows)
{
    return matrix->format == TARTLET_INT4 ? (size_t)num_rows * (matrix->num_inputs / GROUP_INPUTS) : 0;
}

static linear_output output_at(const linear_output *output, int row, int num_outputs)
{
    linear_output moved = *output;
    if (output->mode == TARTLET_GATE)
        moved.gated = (uint8_t *)output->gated + (size_t)row * (num_outputs / 2) * element_bytes(output->kind);
    else
        moved.floats = output->floats + (size_t)row * num_outputs;
    return moved;
}

/* One panel for the rows from `first_row`: in blocks of nearly equal size. */
static void multiply_panel(const tartlet_matrix *matrix, const linear_panel *panel, const uint8_t *inputs, int first_row,
                           int num_rows, const linear_output *output, const float *input_sums)
{
    const int kind = tartlet_kind(matrix->format), num_groups = matrix->num_inputs / GROUP_INPUTS;
    const size_t row_bytes = (size_t)matrix->num_inputs * element_bytes(kind);
    const int max_rows = is_grouped(matrix->format) ? tartlet_max_grouped_rows() : tartlet_max_dense_rows();
    const int num_blocks = (num_rows + max_rows - 1) / max_rows;
    for (int block = 0; block < num_blocks; block++) {
        const int row = first_row + part_begin(num_rows, block, num_blocks);
        const int rows = first_row + part_begin(num_rows, block + 1, num_blocks) - row;
        const linear_output block_output = output_at(output, row, matrix->num_outputs);
        if (is_grouped(matrix->format))
            tartlet_grouped_rows(matrix->format, rows, panel, inputs + row * row_bytes,
                                 input_sums + (size_t)row * num_groups, &block_output);
        else
            tartlet_dense_rows(kind, rows, panel, inputs + row * row_bytes, &block_output);
    }
}

static void sum_groups(const tartlet_matrix *matrix, const uint8_t *inputs, int num_rows, float *input_sums)
{
    const size_t row_bytes = (size_t)matrix->num_inputs * PAIR_ELEMENT_BYTES;
    const int num_groups = matrix->num_inputs / GROUP_INPUTS;
    for (int row = 0; row < num_rows; row++)
        tartlet_sum_groups(inputs + row * row_bytes, matrix->num_inputs, input_sums + (size_t)row * num_groups);
}

/* Compute this thread's panels for all rows. `inputs` are elements [rows, K]. */
void tartlet_linear(const tartlet_matrix *matrix, const void *inputs, int num_rows, const linear_output *output,
                    float *scratch, thread_part part)
{
    const int num_panels = matrix->num_outputs / PANEL_OUTPUTS;
    const size_t panel_bytes = tartlet_panel_bytes(matrix->format, matrix->num_inputs);
    if (matrix->format == TARTLET_INT4)
        sum_groups(matrix, inputs, num_rows, scratch);
    const int tile_rows = num_rows <= MAX_ROWS_AT_ONCE ? num_rows : TILE_ROWS;
    for (int row = 0; row < num_rows; row += tile_rows) {
        const int rows = num_rows - row < tile_rows ? num_rows - row : tile_rows;
        const int end = part_begin(num_panels, part.index + 1, part.count);
        for (int index = part_begin(num_panels, part.index, part.count); index < end; index++) {
            const linear_panel panel = {(const uint8_t *)matrix->panels + index * panel_bytes, index,
                                        matrix->num_inputs, matrix->num_outputs, matrix->bias};
            multiply_panel(matrix, &panel, inputs, row, rows, output, scratch);
        }
    }
}
