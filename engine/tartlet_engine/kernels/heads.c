/* Between the qkv product and attention: head norms, rotary positions, and the writing of keys and values.
 *
 * One key-value head's part of a page is two blocks of 16 * D elements, keys and then values, both laid out so that one
 * step of attention is one load of 64 bytes:
 *
 *     keys    [pair of dimensions][token 16][2]    float32: [dimension][token 16]
 *     values  [pair of tokens][dimension][2]       float32: [token 16][dimension]
 *
 * Threads share out the heads, not the rows: tokens of one pair are always written by one thread. */

#include "common.h"
#include "rms_norm.h"
#include "vector.h"

enum { MAX_HEAD_DIM = 512 };

/* Bytes of a page's keys, or of its values, of one key-value head. */
size_t tartlet_block_bytes(const tartlet_model *model)
{
    return (size_t)round_up(model->head_dim, 16) * PAGE_SIZE * kv_bytes(tartlet_kind(model->format));
}

/* The keys of a page; its values follow. */
uint8_t *tartlet_page_block(const tartlet_model *model, int layer, int64_t page_id, int kv_head)
{
    const size_t page = (size_t)layer * model->num_pages + (size_t)page_id;
    return (uint8_t *)model->kv_pool + (page * model->num_kv_heads + kv_head) * 2 * tartlet_block_bytes(model);
}

/* Normalize a head if the layer has a norm for it, then rotate it by its position. Both have D padded floats. */
static void rotate(const tartlet_model *model, const float *head, const float *norm, int64_t position, float *rotated)
{
    const int dim = model->head_dim, padded_dim = round_up(dim, 16), half = dim / 2;
    const float *cosines = model->cosines + position * half, *sines = model->sines + position * half;
    float normalized[MAX_HEAD_DIM];
    if (norm) {
        const vec16 factor = vec_set(rms_factor(head, dim, padded_dim, model->norm_epsilon));
        for (int i = 0; i < padded_dim; i += 16)
            vec_store(normalized + i, rms_scaled(head, norm, i, factor));
        head = normalized;
    }
    for (int i = 0; i < half; i++) {
        const float first = head[i], second = head[half + i];
        rotated[i] = first * cosines[i] - second * sines[i];
        rotated[half + i] = second * cosines[i] + first * sines[i];
    }
    for (int i = dim; i < padded_dim; i++)
        rotated[i] = 0.0f;
}

static void write_keys(int kind, const float *key, int padded_dim, int64_t slot, void *block)
{
    if (kind == KIND_FLOAT32) {
        for (int d = 0; d < padded_dim; d++)
            ((float *)block)[d * PAGE_SIZE + slot] = key[d];
        return;
    }
    uint32_t *pairs = (uint32_t *)block + slot;
    for (int d = 0; d < padded_dim; d += 2)
        pairs[d / 2 * PAGE_SIZE] = bf16_from_float(key[d]) | (uint32_t)bf16_from_float(key[d + 1]) << 16;
}

/* In bfloat16, the first token of a pair also clears the second: attention may multiply it with zero, and what a former
 * owner of the page left there could be no number. */
static void write_values(int kind, const float *value, int padded_dim, int64_t slot, void *block)
{
    if (kind == KIND_FLOAT32) {
        memcpy((float *)block + slot * padded_dim, value, (size_t)padded_dim * sizeof(float));
        return;
    }
    uint32_t *pairs = (uint32_t *)block + slot / 2 * padded_dim;
    const uint32_t kept = slot % 2 ? 0xFFFF : 0;
    for (int d = 0; d < padded_dim; d++)
        pairs[d] = (pairs[d] & kept) | (uint32_t)bf16_from_float(value[d]) << (slot % 2 * 16);
}

static void prepare_query(const tartlet_model *model, int layer, const tartlet_step *step, const float *qkv, int head,
                          void *queries)
{
    const int padded_dim = round_up(model->head_dim, 16), kind = tartlet_kind(model->format);
    const int row_size = model->layers[layer].qkv.num_outputs;
    const vec16 scale = vec_set(model->attention_scale);
    float rotated[MAX_HEAD_DIM];
    for (int row = 0; row < step->num_rows; row++) {
        const float *query = qkv + (size_t)row * row_size + head * padded_dim;
        rotate(model, query, model->layers[layer].query_norm, step->positions[row], rotated);
        const size_t index = ((size_t)row * model->num_heads + head) * padded_dim;
        for (int i = 0; i < padded_dim; i += 16)
            elements_store(kind, queries, index + i, vec_mul(vec_load(rotated + i), scale));
    }
}

static void prepare_key_value(const tartlet_model *model, int layer, const tartlet_step *step, const float *qkv,
                              int kv_head, int is_value)
{
    const int padded_dim = round_up(model->head_dim, 16), kind = tartlet_kind(model->format);
    const int row_size = model->layers[layer].qkv.num_outputs;
    const int head = model->num_heads + is_value * model->num_kv_heads + kv_head;
    float rotated[MAX_HEAD_DIM];
    for (int row = 0; row < step->num_rows; row++) {
        const float *source = qkv + (size_t)row * row_size + head * padded_dim;
        uint8_t *block = tartlet_page_block(model, layer, step->page_ids[row], kv_head);
        if (is_value) {
            write_values(kind, source, padded_dim, step->offsets[row], block + tartlet_block_bytes(model));
        } else {
            rotate(model, source, model->layers[layer].key_norm, step->positions[row], rotated);
            write_keys(kind, rotated, padded_dim, step->offsets[row], block);
        }
    }
}

/* Prepare this thread's heads for all rows. `qkv` is float[T, N], `queries` elements [T, H, D padded]. */
void tartlet_prepare_heads(const tartlet_model *model, int layer, const tartlet_step *step, const float *qkv,
                           void *queries, thread_part part)
{
    const int num_units = model->num_heads + 2 * model->num_kv_heads;
    const int end = part_begin(num_units, part.index + 1, part.count);
    for (int unit = part_begin(num_units, part.index, part.count); unit < end; unit++) {
        const int kv_unit = unit - model->num_heads;
        if (kv_unit < 0)
            prepare_query(model, layer, step, qkv, unit, queries);
        else
            prepare_key_value(model, layer, step, qkv, kv_unit % model->num_kv_heads, kv_unit >= model->num_kv_heads);
    }
}
