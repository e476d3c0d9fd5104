/* LoRA adapters: what up (down x) adds to the outputs of a matrix, in the rows whose sequences have an adapter.
 *
 * An adapter is two thin matrices for one of the model's. `down` takes a row's inputs to its ranks, `up` takes these to
 * the outputs; the adapter's scale is in `up`. Both go through the same products as the model's matrices, whose sums do
 * not depend on the other rows. Rows without an adapter are computed as in a step in which nobody has one. */

#include "common.h"
#include "linear_output.h"
#include "vector.h"

/* Rows of a gate whose sums wait in memory for what an adapter adds. */
enum { GATE_ROWS = 96 };

int tartlet_lora_gate_rows(void) { return GATE_ROWS; }

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

static uint8_t *ranks_of_row(const lora_memory *memory, int kind, int row)
{
    return (uint8_t *)memory->ranks + (size_t)row * memory->max_rank * element_bytes(kind);
}

/* Whether an adapter of these rows adds to the matrix at `place`. */
int tartlet_has_lora(const lora_rows *rows, int place)
{
    for (int i = 0; i < rows->num_spans; i++)
        if (rows->spans[i].layers[rows->layer].loras[place].up.num_outputs)
            return 1;
    return 0;
}

/* Compute the ranks of this thread's rows. `inputs` are elements [T, K]. */
void tartlet_lora_down(const lora_rows *rows, int place, int kind, const void *inputs, const lora_memory *memory,
                       thread_part part)
{
    const int begin = part_begin(rows->num_rows, part.index, part.count);
    const int end = part_begin(rows->num_rows, part.index + 1, part.count);
    for (int i = 0; i < rows->num_spans; i++) {
        const tartlet_adapter_span *span = &rows->spans[i];
        const tartlet_matrix *down = &span->layers[rows->layer].loras[place].down;
        const int first = most(begin, span->first_row), last = least(end, span->first_row + span->num_rows);
        if (!down->num_outputs || first >= last)
            continue;
        /* A row has room for the greatest rank; the rows of a span lie one behind the other from its first row on. */
        const int rank = down->num_outputs, offset = (first - span->first_row) * rank, count = (last - first) * rank;
        float *sums = memory->sums + (size_t)span->first_row * memory->max_rank + offset;
        uint8_t *ranks = ranks_of_row(memory, kind, span->first_row);
        const linear_output to_sums = {TARTLET_STORE, kind, sums, NULL};
        tartlet_linear(down, (const uint8_t *)inputs + (size_t)first * down->num_inputs * element_bytes(kind),
                       last - first, &to_sums, NULL, (thread_part){0, 1});
        for (int index = 0; index < count; index += 16)
            elements_store(kind, ranks, (size_t)(offset + index), vec_load(sums + index));
    }
}

/* Add to this thread's outputs of the rows first_row to end_row. `outputs` are those of first_row, [rows, N]. */
void tartlet_lora_up(const lora_rows *rows, int place, int kind, int first_row, int end_row, float *outputs,
                     const lora_memory *memory, thread_part part)
{
    for (int i = 0; i < rows->num_spans; i++) {
        const tartlet_adapter_span *span = &rows->spans[i];
        const tartlet_matrix *up = &span->layers[rows->layer].loras[place].up;
        const int first = most(first_row, span->first_row), last = least(end_row, span->first_row + span->num_rows);
        if (!up->num_outputs || first >= last)
            continue;
        const size_t offset = (size_t)(first - span->first_row) * up->num_inputs * element_bytes(kind);
        const linear_output added = {TARTLET_ADD, kind, outputs + (size_t)(first - first_row) * up->num_outputs, NULL};
        tartlet_linear(up, ranks_of_row(memory, kind, span->first_row) + offset, last - first, &added, NULL, part);
    }
}

/* Gate this thread's outputs, as linear_output.h does with sums in registers: silu(16 of gate) * the 16 of up. */
static void gate_sums(const float *sums, int num_rows, int num_outputs, int kind, uint8_t *gated, thread_part part)
{
    const int num_panels = num_outputs / PANEL_OUTPUTS;
    const int end = part_begin(num_panels, part.index + 1, part.count);
    for (int row = 0; row < num_rows; row++)
        for (int panel = part_begin(num_panels, part.index, part.count); panel < end; panel++) {
            const float *both = sums + (size_t)row * num_outputs + panel * PANEL_OUTPUTS;
            elements_store(kind, gated, (size_t)row * (num_outputs / 2) + panel * PANEL_OUTPUTS / 2,
                           vec_mul(silu(vec_load(both)), vec_load(both + 16)));
        }
}

/* A gated product, with the sums in memory between the product and the gate. No thread reads what another writes. */
void tartlet_lora_gate(const lora_rows *rows, const tartlet_matrix *matrix, const void *inputs, void *gated,
                       const lora_memory *memory, float *scratch, thread_part part)
{
    const int kind = tartlet_kind(matrix->format), element = element_bytes(kind);
    const linear_output to_sums = {TARTLET_STORE, kind, memory->gate_sums, NULL};
    for (int row = 0; row < rows->num_rows; row += GATE_ROWS) {
        const int end = least(row + GATE_ROWS, rows->num_rows);
        tartlet_linear(matrix, (const uint8_t *)inputs + (size_t)row * matrix->num_inputs * element, end - row,
                       &to_sums, scratch, part);
        tartlet_lora_up(rows, TARTLET_LORA_GATE_UP, kind, row, end, memory->gate_sums, memory, part);
        gate_sums(memory->gate_sums, end - row, matrix->num_outputs, kind,
                  (uint8_t *)gated + (size_t)row * (matrix->num_outputs / 2) * element, part);
    }
}

void tartlet_multiply_adapted(const tartlet_matrix *matrix, int place, const tartlet_adapter_span *spans, int num_spans,
                              const void *inputs, int num_rows, int mode, float *outputs, void *gated, float *scratch,
                              int max_rank, float *sums, void *ranks, float *gate_sums)
{
    const lora_rows rows = {spans, num_spans, num_rows, 0};
    const lora_memory memory = {max_rank, sums, ranks, gate_sums};
    const thread_part alone = {0, 1};
    const int kind = tartlet_kind(matrix->format);
    const linear_output output = {mode, kind, outputs, gated};
    tartlet_lora_down(&rows, place, kind, inputs, &memory, alone);
    if (mode == TARTLET_GATE) {
        tartlet_lora_gate(&rows, matrix, inputs, gated, &memory, scratch, alone);
        return;
    }
    tartlet_linear(matrix, inputs, num_rows, &output, scratch, alone);
    tartlet_lora_up(&rows, place, kind, 0, num_rows, outputs, &memory, alone);
}
