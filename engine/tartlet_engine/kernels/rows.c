/* Kernels that work on single rows: the embedding of a token, the norm of a row, and what tests need of vector.h. */

#include "common.h"
#include "group_layout.h"
#include "rms_norm.h"
#include "vector.h"

INLINE float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void embed_float32(const uint8_t *panel, int lane, int num_inputs, float *row)
{
    const float *weights = (const float *)panel + lane;
    for (int k = 0; k < num_inputs; k++)
        row[k] = weights[k * PANEL_OUTPUTS];
}

static void embed_bfloat16(const uint8_t *panel, int lane, int num_inputs, float *row)
{
    const uint32_t *pairs = (const uint32_t *)panel + lane;
    for (int k = 0; k < num_inputs / 2; k++) {
        row[2 * k] = float_from_bits(pairs[k * PANEL_OUTPUTS] << 16);
        row[2 * k + 1] = float_from_bits(pairs[k * PANEL_OUTPUTS] & 0xFFFF0000);
    }
}

static void embed_grouped(const int format, const uint8_t *panel, int lane, int num_inputs, float *row)
{
    const int half = lane / 16, output = lane % 16;
    for (int first = 0; first < num_inputs; first += GROUP_INPUTS, panel += group_bytes(format)) {
        const uint8_t *numbers = panel + half * half_bytes(format);
        const float scale = _cvtsh_ss(group_scales(format, panel, half)[output]);
        const float minimum = format == TARTLET_INT4 ? _cvtsh_ss(group_minima(panel, half)[output]) : 0.0f;
        for (int i = 0; i < GROUP_INPUTS; i++) {
            const int pair = i / 2, odd = i % 2;
            int number = ((const int8_t *)numbers)[32 * pair + 16 * odd + output];
            if (format == TARTLET_INT4)
                number = ((const uint16_t *)numbers)[pair / 4 * 32 + 2 * output + odd] >> (4 * (pair % 4)) & 15;
            row[first + i] = (float)number * scale + minimum;
        }
    }
}

/* Write a token's embedding, float[K padded], read from the packed matrix: a tied head needs no second copy. */
void tartlet_embed(const tartlet_matrix *embedding, int64_t token_id, float *row)
{
    const int num_inputs = embedding->num_inputs, lane = (int)(token_id % PANEL_OUTPUTS);
    const uint8_t *panel = (const uint8_t *)embedding->panels +
                           (size_t)(token_id / PANEL_OUTPUTS) * tartlet_panel_bytes(embedding->format, num_inputs);
    switch (embedding->format) {
    case TARTLET_FLOAT32: embed_float32(panel, lane, num_inputs, row); break;
    case TARTLET_BFLOAT16: embed_bfloat16(panel, lane, num_inputs, row); break;
    case TARTLET_INT8: embed_grouped(TARTLET_INT8, panel, lane, num_inputs, row); break;
    case TARTLET_INT4: embed_grouped(TARTLET_INT4, panel, lane, num_inputs, row); break;
    }
}

/* Write the norm of a row, as the elements that the model's matrices take. */
void tartlet_normalize(int format, const float *row, const float *weight, int size, int padded_size, float epsilon,
                       void *elements)
{
    const vec16 factor = vec_set(rms_factor(row, size, padded_size, epsilon));
    const int kind = tartlet_kind(format);
    for (int i = 0; i < padded_size; i += 16)
        elements_store(kind, elements, (size_t)i, rms_scaled(row, weight, i, factor));
}

int tartlet_element_bytes(int format) { return element_bytes(tartlet_kind(format)); }

/* `count` is a multiple of 16, here and below. */
void tartlet_store_elements(int format, const float *values, int count, void *elements)
{
    for (int i = 0; i < count; i += 16)
        elements_store(tartlet_kind(format), elements, (size_t)i, vec_load(values + i));
}

void tartlet_exponentials(const float *values, int count, float *results)
{
    for (int i = 0; i < count; i += 16)
        vec_store(results + i, vec_exp(vec_load(values + i)));
}

size_t tartlet_multiply_scratch_floats(const tartlet_matrix *matrix, int num_rows)
{
    return tartlet_linear_scratch_floats(matrix, num_rows);
}

void tartlet_multiply(const tartlet_matrix *matrix, const void *inputs, int num_rows, int mode, float *outputs,
                      void *gated, float *scratch)
{
    const linear_output output = {mode, tartlet_kind(matrix->format), outputs, gated};
    tartlet_linear(matrix, inputs, num_rows, &output, scratch, (thread_part){0, 1});
}
