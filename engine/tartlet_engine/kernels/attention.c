/* Paged attention: up to MAX_QUERIES queries that share a key-value head, over the pages of one sequence, in place.
 *
 * The queries are heads of one token (decode) or of a few consecutive tokens (prefill); each load of keys or values
 * serves all of them. Scores of a page's 16 tokens fall out of one accumulator per query (heads.c draws the blocks), the
 * softmax goes twice over a buffer of scores, and values are mixed in the order of tokens. A query's sums do not depend
 * on the queries beside it: what it must not see has probability zero, and adding zero changes nothing.
 *
 * Rows of a tree are computed one by one, without the slots that they do not see (attention_tree.h).
 *
 * Pages lie anywhere, so the CPU cannot guess the next one. Blocks are therefore listed in the order in which they will
 * be read (keys, values, then the first of the next item), and each load fetches the line at its place in the block
 * BLOCKS_AHEAD further on into the L2 cache. */

#include "attention_tree.h"
#include "common.h"
#include "vector.h"

enum { MAX_DIM = 512, NARROW_QUERIES = 4 };

typedef struct {
    const uint8_t *queries; /* elements [queries, D padded] */
    const uint8_t *const *blocks;
    float *scores;       /* [queries, capacity] */
    void *probabilities; /* elements [queries, capacity] */
    int capacity;
    int dim; /* padded */
    int first_page, num_pages;
    int end;                              /* tokens that the last query sees */
    const float *tail_factors;            /* of a tree's row (attention_tree.h), or NULL */
    int tail_page;                        /* the first page that they belong to */
    int begins[12], ends[12];             /* tokens that each query sees */
    float factors[12];                    /* 1 / sum of the query's probabilities */
    void *outputs;                        /* elements */
    size_t output_indices[12];            /* of each query's output in `outputs` */
} attention_view;

/* Compute the scores of `num_pages` pages from `page`. */
INLINE void score_pages(const int kind, const int num_queries, const int num_pages, attention_view *view, int page)
{
    const int num_steps = view->dim / step_depth(kind);
    const size_t query_bytes = (size_t)view->dim * element_bytes(kind);
    const uint8_t *queries = view->queries;
    const uint8_t *const *blocks = view->blocks + page;
    vec16 sums[MAX_QUERIES][2];
    UNROLL for (int query = 0; query < num_queries; query++)
        UNROLL for (int p = 0; p < num_pages; p++) sums[query][p] = vec_zero();
    _Pragma("GCC unroll 2") for (int step = 0; step < num_steps; step++)
        UNROLL for (int p = 0; p < num_pages; p++)
        {
            step16 keys = step_load(kind, blocks[p] + 64 * step);
            _mm_prefetch((const char *)blocks[p + BLOCKS_AHEAD] + 64 * step, _MM_HINT_T1);
            UNROLL for (int query = 0; query < num_queries; query++) sums[query][p] =
                step_add(kind, sums[query][p], keys, queries + query * query_bytes, step);
        }
    UNROLL for (int query = 0; query < num_queries; query++)
        UNROLL for (int p = 0; p < num_pages; p++)
            vec_store(view->scores + (size_t)query * view->capacity + (page + p) * PAGE_SIZE, sums[query][p]);
}

/* Turn one query's scores into probabilities, not yet divided by their sum. */
static void exponentiate(int kind, attention_view *view, int query)
{
    const float *scores = view->scores + (size_t)query * view->capacity;
    const int begin = view->begins[query], end = view->ends[query];
    const float lowest = -3.0e38f;
    vec16 greatest = vec_set(lowest);
    for (int page = 0; page < view->num_pages; page++) {
        const int token = (view->first_page + page) * PAGE_SIZE;
        greatest = vec_max(greatest, vec_keep_range(vec_load(scores + page * PAGE_SIZE), token, begin, end, lowest));
    }
    greatest = vec_set(vec_greatest(greatest));
    vec16 sum = vec_zero();
    for (int page = 0; page < view->num_pages; page++) {
        const int token = (view->first_page + page) * PAGE_SIZE;
        vec16 power = vec_exp(vec_sub(vec_load(scores + page * PAGE_SIZE), greatest));
        power = vec_keep_range(power, token, begin, end, 0.0f);
        sum = vec_add(sum, power);
        elements_store(kind, view->probabilities, (size_t)query * view->capacity + page * PAGE_SIZE, power);
    }
    view->factors[query] = 1.0f / vec_sum(sum);
}

/* exponentiate() for a row of a tree: the same sums, without what it does not see. */
static __attribute__((noinline)) void exponentiate_tree(int kind, attention_view *view, int query)
{
    float *scores = view->scores + (size_t)query * view->capacity;
    const int begin = view->begins[query], end = view->ends[query];
    const float lowest = -3.0e38f;
    const int tail_slot = view->tail_page * PAGE_SIZE;
    tree_hide_scores(view->tail_factors, end - tail_slot, lowest, scores + tail_slot - view->first_page * PAGE_SIZE);
    vec16 greatest = vec_set(lowest);
    for (int page = 0; page < view->num_pages; page++) {
        const int token = (view->first_page + page) * PAGE_SIZE;
        greatest = vec_max(greatest, vec_keep_range(vec_load(scores + page * PAGE_SIZE), token, begin, end, lowest));
    }
    greatest = vec_set(vec_greatest(greatest));
    vec16 sum = vec_zero();
    for (int page = 0; page < view->num_pages; page++) {
        const int token = (view->first_page + page) * PAGE_SIZE, tail_page = view->first_page + page - view->tail_page;
        vec16 power = vec_exp(vec_sub(vec_load(scores + page * PAGE_SIZE), greatest));
        power = vec_keep_range(power, token, begin, end, 0.0f);
        if (tail_page >= 0)
            power = vec_mul(power, vec_load(view->tail_factors + tail_page * PAGE_SIZE));
        sum = vec_add(sum, power);
        elements_store(kind, view->probabilities, (size_t)query * view->capacity + page * PAGE_SIZE, power);
    }
    view->factors[query] = 1.0f / vec_sum(sum);
}

/* Mix `num_vectors` times 16 dimensions of the values, and write them. */
INLINE void mix_values(const int kind, const int num_queries, const int num_vectors, attention_view *view, int first_dim)
{
    const size_t step_bytes = (size_t)view->dim * 4, row_bytes = (size_t)view->capacity * element_bytes(kind);
    const uint8_t *const *blocks = view->blocks + view->num_pages;
    const uint8_t *probabilities = view->probabilities;
    vec16 sums[MAX_QUERIES][4];
    UNROLL for (int query = 0; query < num_queries; query++)
        UNROLL for (int v = 0; v < num_vectors; v++) sums[query][v] = vec_zero();
    for (int page = 0; page < view->num_pages; page++) {
        const int num_left = view->end - (view->first_page + page) * PAGE_SIZE;
        const int num_tokens = num_left < PAGE_SIZE ? num_left : PAGE_SIZE;
        const int num_steps = (num_tokens + step_depth(kind) - 1) / step_depth(kind);
        const uint8_t *block = blocks[page] + first_dim * 4, *ahead = blocks[page + BLOCKS_AHEAD] + first_dim * 4;
        const int first_step = page * PAGE_SIZE / step_depth(kind);
        for (int step = 0; step < num_steps; step++, block += step_bytes, ahead += step_bytes)
            UNROLL for (int v = 0; v < num_vectors; v++)
            {
                step16 values = step_load(kind, block + 64 * v);
                _mm_prefetch((const char *)ahead + 64 * v, _MM_HINT_T1);
                UNROLL for (int query = 0; query < num_queries; query++) sums[query][v] = step_add(
                    kind, sums[query][v], values, probabilities + query * row_bytes, first_step + step);
            }
    }
    UNROLL for (int query = 0; query < num_queries; query++)
        UNROLL for (int v = 0; v < num_vectors; v++)
            elements_store(kind, view->outputs, view->output_indices[query] + first_dim + 16 * v,
                           vec_mul(sums[query][v], vec_set(view->factors[query])));
}

/* Few queries read two pages at a time and all of a head's dimensions, so that there are sums enough to keep the
 * multipliers busy; many queries have those anyway. */
INLINE void attend(const int kind, const int num_queries, attention_view *view)
{
    const int is_narrow = num_queries <= NARROW_QUERIES;
    int page = 0;
    if (is_narrow)
        for (; page + 1 < view->num_pages; page += 2)
            score_pages(kind, num_queries, 2, view, page);
    for (; page < view->num_pages; page++)
        score_pages(kind, num_queries, 1, view, page);
    for (int query = 0; query < num_queries; query++) {
        if (view->tail_factors)
            exponentiate_tree(kind, view, query);
        else
            exponentiate(kind, view, query);
    }
    int dim = 0;
    if (is_narrow)
        for (; dim + 16 * MAX_VALUE_VECTORS <= view->dim; dim += 16 * MAX_VALUE_VECTORS)
            mix_values(kind, num_queries, MAX_VALUE_VECTORS, view, dim);
    for (; dim < view->dim; dim += 16)
        mix_values(kind, num_queries, 1, view, dim);
}

#define DEFINE_ATTEND(name, kind, num_queries)                          \
    static __attribute__((noinline)) void name(attention_view *view)    \
    {                                                                   \
        if (num_queries <= MAX_QUERIES)                                 \
            attend(kind, num_queries <= MAX_QUERIES ? num_queries : 1, view); \
    }

DEFINE_ATTEND(attend_float32_1, KIND_FLOAT32, 1)
DEFINE_ATTEND(attend_float32_2, KIND_FLOAT32, 2)
DEFINE_ATTEND(attend_float32_3, KIND_FLOAT32, 3)
DEFINE_ATTEND(attend_float32_4, KIND_FLOAT32, 4)
DEFINE_ATTEND(attend_float32_8, KIND_FLOAT32, 8)
DEFINE_ATTEND(attend_float32_12, KIND_FLOAT32, 12)
DEFINE_ATTEND(attend_bfloat16_1, KIND_BFLOAT16, 1)
DEFINE_ATTEND(attend_bfloat16_2, KIND_BFLOAT16, 2)
DEFINE_ATTEND(attend_bfloat16_3, KIND_BFLOAT16, 3)
DEFINE_ATTEND(attend_bfloat16_4, KIND_BFLOAT16, 4)
DEFINE_ATTEND(attend_bfloat16_8, KIND_BFLOAT16, 8)
DEFINE_ATTEND(attend_bfloat16_12, KIND_BFLOAT16, 12)

typedef void attend_function(attention_view *view);

/* By number of queries; numbers in between take the next one up, with repeated queries that nobody reads. */
static const struct {
    int num_queries;
    attend_function *by_kind[2];
} ATTEND[] = {
    {1, {attend_float32_1, attend_bfloat16_1}}, {2, {attend_float32_2, attend_bfloat16_2}},
    {3, {attend_float32_3, attend_bfloat16_3}}, {4, {attend_float32_4, attend_bfloat16_4}},
    {8, {attend_float32_8, attend_bfloat16_8}}, {12, {attend_float32_12, attend_bfloat16_12}},
};

int tartlet_max_queries(void) { return MAX_QUERIES; }

static int first_token(int window, int64_t slot)
{
    return window && slot >= window ? (int)slot + 1 - window : 0;
}

/* Let the row of a tree read the values of its tail from copies. */
static void copy_tail(int kind, const attention_view *view, const uint8_t **blocks, size_t block_bytes, uint8_t *copies)
{
    int page = view->tail_page - view->first_page;
    for (int i = 0; page < view->num_pages; i++, page++) {
        const uint8_t **values = blocks + view->num_pages + page;
        tree_copy_values(kind, *values, view->dim, view->tail_factors + i * PAGE_SIZE, copies + i * block_bytes);
        *values = copies + i * block_bytes;
    }
}

/* List the blocks that the item reads, and the first of the next one's. */
static void list_blocks(const tartlet_model *model, int layer, const attention_item *item, const attention_item *next,
                        const int64_t *slots, const attention_view *view, const uint8_t **blocks)
{
    const size_t block_bytes = tartlet_block_bytes(model);
    const int num_pages = view->num_pages;
    for (int page = 0; page < num_pages; page++) {
        const int64_t page_id = item->page_table[view->first_page + page];
        blocks[page] = tartlet_page_block(model, layer, page_id, item->kv_head);
        blocks[num_pages + page] = blocks[page] + block_bytes;
    }
    int next_page = 0, last_page = view->num_pages - 1;
    if (next) {
        next_page = first_token(model->layers[layer].sliding_window, slots[next->first_row]) / PAGE_SIZE;
        last_page = (int)slots[next->first_row] / PAGE_SIZE;
    } else {
        next = item;
        next_page = view->first_page;
        last_page = view->first_page + view->num_pages - 1;
    }
    for (int ahead = 0; ahead < BLOCKS_AHEAD; ahead++, next_page += next_page < last_page)
        blocks[2 * num_pages + ahead] = tartlet_page_block(model, layer, next->page_table[next_page], next->kv_head);
}

/* Compute one item. `next` is what the thread computes after it, or NULL; `queries` and `attended` are elements of all
 * rows; `capacity` is the number of scores that there is room for. */
void tartlet_attend(const tartlet_model *model, int layer, const attention_item *item, const attention_item *next,
                    const int64_t *slots, const void *queries, void *attended, int capacity,
                    attention_scratch *scratch)
{
    const int kind = tartlet_kind(model->format), dim = round_up(model->head_dim, 16);
    const int window = model->layers[layer].sliding_window;
    const int num_queries = item->num_rows * item->num_heads;
    const size_t output_row = (size_t)model->layers[layer].attention_output.num_inputs;
    const size_t query_bytes = (size_t)dim * element_bytes(kind);
    uint8_t gathered[12 * MAX_DIM * 4] __attribute__((aligned(64)));
    attention_view view = {.queries = gathered, .blocks = scratch->blocks, .scores = scratch->scores,
                           .probabilities = scratch->probabilities, .capacity = capacity, .dim = dim,
                           .outputs = attended};
    int choice = 0;
    while (ATTEND[choice].num_queries < num_queries)
        choice++;
    for (int i = 0; i < ATTEND[choice].num_queries; i++) {
        const int query = i < num_queries ? i : num_queries - 1;
        const int row = item->first_row + query / item->num_heads, head = item->first_head + query % item->num_heads;
        memcpy(gathered + i * query_bytes,
               (const uint8_t *)queries + ((size_t)row * model->num_heads + head) * query_bytes, query_bytes);
        view.begins[i] = first_token(window, slots[row]);
        view.ends[i] = (int)slots[row] + 1;
        view.output_indices[i] = row * output_row + (size_t)head * dim;
    }
    if (item->tree) {
        tree_look(item->tree, item->first_row, window, scratch->tail_factors, &view.begins[0], &view.ends[0]);
        for (int i = 1; i < ATTEND[choice].num_queries; i++) {
            view.begins[i] = view.begins[0];
            view.ends[i] = view.ends[0];
        }
        view.tail_factors = scratch->tail_factors;
        view.tail_page = item->tree->tail_start / PAGE_SIZE;
    }
    view.end = view.ends[num_queries - 1];
    view.first_page = view.begins[0] / PAGE_SIZE;
    view.num_pages = (view.end + PAGE_SIZE - 1) / PAGE_SIZE - view.first_page;
    list_blocks(model, layer, item, next, slots, &view, scratch->blocks);
    if (item->tree)
        copy_tail(kind, &view, scratch->blocks, tartlet_block_bytes(model), scratch->tail_values);
    ATTEND[choice].by_kind[kind](&view);
}
