/* One step of the model, from token ids to logits: the order of things, and the memory between them.
 *
 * All threads run the same code, each on its part, with a barrier wherever one needs what another has written. */

#include "common.h"
#include "vector.h"

enum { CACHE_LINE = 64 };

typedef struct {
    float *residual; /* [T, hidden padded] */
    float *qkv;      /* [T, N] */
    void *normed;    /* elements [T, hidden padded] */
    void *queries;   /* elements [T, H, D padded] */
    void *attended;  /* elements [T, H * D padded, padded]; padding is zero from the start and never written */
    void *gated;     /* elements [T, mlp padded] */
    lora_memory lora;
    attention_item *items;
    struct {
        float *linear;
        attention_scratch attention;
    } *threads;
} workspace;

typedef struct {
    const tartlet_model *model;
    const tartlet_step *step;
    tartlet_team *team;
    workspace memory;
    int capacity; /* tokens of context that there is room for */
    int num_items;
} step_run;

/* ---- Memory -------------------------------------------------------------------------------------------------- */

/* Takes the next part of a buffer; without a buffer it only counts. */
typedef struct {
    uint8_t *base;
    size_t used;
} carver;

static void *carve(carver *from, size_t num_bytes)
{
    void *address = from->base ? from->base + from->used : NULL;
    from->used += (num_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    return address;
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static size_t linear_scratch_floats(const tartlet_model *model, int num_rows)
{
    size_t floats = tartlet_linear_scratch_floats(&model->head, num_rows);
    for (int i = 0; i < model->num_layers; i++) {
        const tartlet_layer *layer = &model->layers[i];
        floats = most(floats, tartlet_linear_scratch_floats(&layer->qkv, num_rows));
        floats = most(floats, tartlet_linear_scratch_floats(&layer->attention_output, num_rows));
        floats = most(floats, tartlet_linear_scratch_floats(&layer->gate_up, num_rows));
        floats = most(floats, tartlet_linear_scratch_floats(&layer->down, num_rows));
    }
    return floats;
}

static int items_per_row(const tartlet_model *model)
{
    const int num_heads = model->num_heads / model->num_kv_heads;
    return model->num_kv_heads * ((num_heads + tartlet_max_queries() - 1) / tartlet_max_queries());
}

/* Lay the workspace out in `from`, for up to num_rows rows and context_len tokens. */
static workspace carve_workspace(const tartlet_model *model, int num_rows, int context_len, int num_threads,
                                 carver *from)
{
    const tartlet_layer *layer = &model->layers[0];
    const size_t rows = (size_t)num_rows, element = element_bytes(tartlet_kind(model->format));
    const size_t scores = (size_t)tartlet_max_queries() * round_up(context_len, PAGE_SIZE);
    const size_t tail_pages = rows / PAGE_SIZE + 2; /* a tail begins and ends anywhere in a page */
    workspace memory;
    memory.residual = carve(from, rows * layer->qkv.num_inputs * sizeof(float));
    memory.qkv = carve(from, rows * layer->qkv.num_outputs * sizeof(float));
    memory.normed = carve(from, rows * layer->qkv.num_inputs * element);
    memory.queries = carve(from, rows * model->num_heads * round_up(model->head_dim, 16) * element);
    memory.attended = carve(from, rows * layer->attention_output.num_inputs * element);
    memory.gated = carve(from, rows * layer->down.num_inputs * element);
    memory.lora.max_rank = model->max_rank;
    memory.lora.sums = carve(from, rows * model->max_rank * sizeof(float));
    memory.lora.ranks = carve(from, rows * model->max_rank * element);
    const size_t gate_rows = model->max_rank ? (size_t)tartlet_lora_gate_rows() : 0;
    memory.lora.gate_sums = carve(from, gate_rows * layer->gate_up.num_outputs * sizeof(float));
    memory.items = carve(from, rows * items_per_row(model) * sizeof(attention_item));
    memory.threads = carve(from, num_threads * sizeof *memory.threads);
    for (int i = 0; i < num_threads; i++) {
        float *linear = carve(from, linear_scratch_floats(model, num_rows) * sizeof(float));
        attention_scratch attention;
        attention.scores = carve(from, scores * sizeof(float));
        attention.probabilities = carve(from, scores * element);
        attention.blocks = carve(from, (2 * ((size_t)context_len / PAGE_SIZE + 1) + BLOCKS_AHEAD) * sizeof(uint8_t *));
        attention.tail_factors = carve(from, tail_pages * PAGE_SIZE * sizeof(float));
        attention.tail_values = carve(from, tail_pages * tartlet_block_bytes(model));
        if (from->base) {
            memory.threads[i].linear = linear;
            memory.threads[i].attention = attention;
        }
    }
    return memory;
}

size_t tartlet_workspace_bytes(const tartlet_model *model, int num_rows, int context_len, int num_threads)
{
    carver counter = {NULL, 0};
    carve_workspace(model, num_rows, context_len, num_threads, &counter);
    return counter.used;
}

/* ---- Attention's items --------------------------------------------------------------------------------------- */

static int list_segment(const tartlet_model *model, const tartlet_segment *segment, attention_item *items)
{
    const int max_queries = tartlet_max_queries(), num_heads = model->num_heads / model->num_kv_heads;
    const int heads_at_once = num_heads < max_queries ? num_heads : max_queries;
    const int rows_at_once = segment->visible ? 1 : max_queries / heads_at_once;
    const tartlet_segment *tree = segment->visible ? segment : NULL;
    int count = 0;
    for (int row = 0; row < segment->num_rows; row += rows_at_once) {
        const int rows = segment->num_rows - row < rows_at_once ? segment->num_rows - row : rows_at_once;
        for (int kv_head = 0; kv_head < model->num_kv_heads; kv_head++)
            for (int head = 0; head < num_heads; head += heads_at_once) {
                const int heads = num_heads - head < heads_at_once ? num_heads - head : heads_at_once;
                items[count++] = (attention_item){segment->page_table, tree, segment->first_row + row, rows, kv_head,
                                                  kv_head * num_heads + head, heads};
            }
    }
    return count;
}

/* List what attention has to do, the same in every layer. */
static int list_items(const tartlet_model *model, const tartlet_step *step, attention_item *items)
{
    int count = 0;
    for (int i = 0; i < step->num_segments; i++)
        count += list_segment(model, &step->segments[i], items + count);
    return count;
}

static int64_t item_cost(const step_run *run, const attention_item *item)
{
    return run->step->slots[item->first_row + item->num_rows - 1] / PAGE_SIZE + 2;
}

/* Attend to this thread's items: consecutive ones, of about the same cost as every other thread's. */
static void attend_part(step_run *run, int layer, thread_part part)
{
    const attention_item *items = run->memory.items;
    int64_t total = 0, cost = 0;
    for (int i = 0; i < run->num_items; i++)
        total += item_cost(run, &items[i]);
    int first = 0, end = 0;
    for (int i = 0; i < run->num_items; i++) {
        const int64_t owner = cost * part.count / total;
        first += owner < part.index;
        end += owner <= part.index;
        cost += item_cost(run, &items[i]);
    }
    for (int i = first; i < end; i++)
        tartlet_attend(run->model, layer, &items[i], i + 1 < end ? &items[i + 1] : NULL, run->step->slots,
                       run->memory.queries, run->memory.attended, round_up(run->capacity, PAGE_SIZE),
                       &run->memory.threads[part.index].attention);
}

/* ---- The step ------------------------------------------------------------------------------------------------ */

static void embed_rows(step_run *run, thread_part part)
{
    const tartlet_matrix *embedding = &run->model->embedding;
    const int end = part_begin(run->step->num_rows, part.index + 1, part.count);
    for (int i = part_begin(run->step->num_rows, part.index, part.count); i < end; i++) {
        float *row = run->memory.residual + (size_t)i * embedding->num_inputs;
        tartlet_embed(embedding, run->step->token_ids[i], row);
        for (int k = run->model->hidden_size; k < embedding->num_inputs; k++)
            row[k] = 0.0f; /* a group with a minimum cannot always hold the zeros of padding */
    }
}

/* Normalize rows of the residual: row i of the result is that of `rows[i]`, or of i without `rows`. */
static void normalize_rows(step_run *run, const float *weight, const int64_t *rows, int num_rows, thread_part part)
{
    const tartlet_model *model = run->model;
    const int padded_size = model->embedding.num_inputs, element = tartlet_element_bytes(model->format);
    const int end = part_begin(num_rows, part.index + 1, part.count);
    for (int i = part_begin(num_rows, part.index, part.count); i < end; i++) {
        const size_t row = rows ? (size_t)rows[i] : (size_t)i;
        tartlet_normalize(model->format, run->memory.residual + row * padded_size, weight, model->hidden_size,
                          padded_size, model->norm_epsilon,
                          (uint8_t *)run->memory.normed + (size_t)i * padded_size * element);
    }
}

static void multiply(step_run *run, const tartlet_matrix *matrix, const void *inputs, int num_rows,
                     linear_output output, thread_part part)
{
    tartlet_linear(matrix, inputs, num_rows, &output, run->memory.threads[part.index].linear, part);
    tartlet_team_wait(run->team, part.index);
}

/* multiply() with all rows of the step, and what their adapters add in this layer. */
static void multiply_adapted(step_run *run, int layer, int place, const tartlet_matrix *matrix, const void *inputs,
                             linear_output output, thread_part part)
{
    const tartlet_step *step = run->step;
    const lora_rows rows = {step->adapter_spans, step->num_adapter_spans, step->num_rows, layer};
    if (!tartlet_has_lora(&rows, place)) {
        multiply(run, matrix, inputs, step->num_rows, output, part);
        return;
    }
    float *scratch = run->memory.threads[part.index].linear;
    tartlet_lora_down(&rows, place, output.kind, inputs, &run->memory.lora, part);
    tartlet_team_wait(run->team, part.index); /* every thread adds to its outputs of all rows */
    if (output.mode == TARTLET_GATE) {
        tartlet_lora_gate(&rows, matrix, inputs, output.gated, &run->memory.lora, scratch, part);
    } else {
        tartlet_linear(matrix, inputs, step->num_rows, &output, scratch, part);
        tartlet_lora_up(&rows, place, output.kind, 0, step->num_rows, output.floats, &run->memory.lora, part);
    }
    tartlet_team_wait(run->team, part.index);
}

static void compute_layer(step_run *run, int index, thread_part part)
{
    const tartlet_layer *layer = &run->model->layers[index];
    const int num_rows = run->step->num_rows, kind = tartlet_kind(run->model->format);
    const workspace *memory = &run->memory;
    const linear_output to_qkv = {TARTLET_STORE, kind, memory->qkv, NULL};
    const linear_output to_residual = {TARTLET_ADD, kind, memory->residual, NULL};
    const linear_output to_gated = {TARTLET_GATE, kind, NULL, memory->gated};

    normalize_rows(run, layer->attention_norm, NULL, num_rows, part);
    tartlet_team_wait(run->team, part.index);
    multiply_adapted(run, index, TARTLET_LORA_QKV, &layer->qkv, memory->normed, to_qkv, part);
    tartlet_prepare_heads(run->model, index, run->step, memory->qkv, memory->queries, part);
    tartlet_team_wait(run->team, part.index);
    attend_part(run, index, part);
    tartlet_team_wait(run->team, part.index);
    multiply_adapted(run, index, TARTLET_LORA_ATTENTION_OUTPUT, &layer->attention_output, memory->attended,
                     to_residual, part);
    normalize_rows(run, layer->mlp_norm, NULL, num_rows, part);
    tartlet_team_wait(run->team, part.index);
    multiply_adapted(run, index, TARTLET_LORA_GATE_UP, &layer->gate_up, memory->normed, to_gated, part);
    multiply_adapted(run, index, TARTLET_LORA_DOWN, &layer->down, memory->gated, to_residual, part);
}

static void compute_part(void *argument, int thread)
{
    step_run *run = argument;
    const tartlet_model *model = run->model;
    const tartlet_step *step = run->step;
    const thread_part part = {thread, tartlet_team_active(run->team)};
    embed_rows(run, part);
    tartlet_team_wait(run->team, part.index);
    for (int layer = 0; layer < model->num_layers; layer++)
        compute_layer(run, layer, part);
    if (step->num_logit_rows == 0)
        return;
    normalize_rows(run, model->final_norm, step->logit_rows, step->num_logit_rows, part);
    tartlet_team_wait(run->team, part.index);
    const linear_output to_logits = {TARTLET_STORE, tartlet_kind(model->format), step->logits, NULL};
    multiply(run, &model->head, run->memory.normed, step->num_logit_rows, to_logits, part);
}

/* Compute a step in a workspace that was made for `num_rows` rows and `context_len` tokens, or for more of both. */
void tartlet_compute_step(const tartlet_model *model, const tartlet_step *step, tartlet_team *team, void *memory,
                          int num_rows, int context_len)
{
    carver from = {memory, 0};
    step_run run = {.model = model, .step = step, .team = team, .capacity = context_len};
    run.memory = carve_workspace(model, num_rows, context_len, tartlet_team_size(team), &from);
    run.num_items = list_items(model, step, run.memory.items);
    tartlet_team_run(team, compute_part, &run);
}

void tartlet_attend_alone(const tartlet_model *model, const tartlet_step *step, const float *qkv, void *memory,
                          int num_rows, int context_len, float *attended)
{
    const thread_part alone = {0, 1};
    carver from = {memory, 0};
    step_run run = {.model = model, .step = step, .capacity = context_len};
    run.memory = carve_workspace(model, num_rows, context_len, alone.count, &from);
    run.num_items = list_items(model, step, run.memory.items);
    tartlet_prepare_heads(model, 0, step, qkv, run.memory.queries, alone);
    attend_part(&run, 0, alone);
    const size_t count = (size_t)step->num_rows * model->layers[0].attention_output.num_inputs;
    for (size_t i = 0; i < count; i += 16)
        vec_store(attended + i, elements_load(tartlet_kind(model->format), run.memory.attended, i));
}
