/* Declarations that the kernels share among themselves. */

#ifndef TARTLET_COMMON_H
#define TARTLET_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "interface.h"

enum {
    PANEL_OUTPUTS = 32, /* outputs of a matrix that are computed together: two vectors */
    GROUP_INPUTS = 32,  /* inputs that share a scale */
    PAGE_SIZE = 16,     /* tokens of a page: one vector of scores */
    BLOCKS_AHEAD = 4,   /* how far attention fetches blocks of the cache ahead */
};

static inline int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/* The part of `count` that a thread takes: from part_begin(count, thread, T) to part_begin(count, thread + 1, T). */
static inline int part_begin(int count, int thread, int num_threads)
{
    return (int)((int64_t)count * thread / num_threads);
}

/* Which of the num_threads threads is calling. */
typedef struct {
    int index;
    int count;
} thread_part;

/* team.c */
int tartlet_team_size(const tartlet_team *team);
void tartlet_team_run(tartlet_team *team, void (*task)(void *argument, int thread), void *argument);
int tartlet_team_active(const tartlet_team *team);
void tartlet_team_wait(tartlet_team *team, int thread);

/* linear.c: where the sums of a matrix product go. */
typedef struct {
    int mode;       /* enum tartlet_output_mode */
    int kind;       /* of `gated` */
    float *floats;  /* [rows, N]: TARTLET_STORE and TARTLET_ADD */
    void *gated;    /* elements [rows, N / 2]: TARTLET_GATE */
} linear_output;

int tartlet_kind(int format);
size_t tartlet_panel_bytes(int format, int num_inputs);
size_t tartlet_linear_scratch_floats(const tartlet_matrix *matrix, int num_rows);
void tartlet_linear(const tartlet_matrix *matrix, const void *inputs, int num_rows, const linear_output *output,
                    float *scratch, thread_part part);

/* One panel for up to MAX_..._ROWS rows: linear_dense.c, linear_grouped.c. `output` points at the first row. */
typedef struct {
    const uint8_t *panel;
    int panel_index;
    int num_inputs;
    int num_outputs;
    const float *bias;
} linear_panel;

int tartlet_max_dense_rows(void);
int tartlet_max_grouped_rows(void);
void tartlet_dense_rows(int kind, int num_rows, const linear_panel *panel, const void *inputs,
                        const linear_output *output);
void tartlet_grouped_rows(int format, int num_rows, const linear_panel *panel, const void *inputs,
                          const float *input_sums, const linear_output *output);
void tartlet_sum_groups(const void *inputs, int num_inputs, float *sums);

/* lora.c: the rows of a step that have adapters, in one layer, and the memory for them. */
typedef struct {
    const tartlet_adapter_span *spans;
    int num_spans;
    int num_rows; /* of the step, T */
    int layer;
} lora_rows;

typedef struct {
    int max_rank;
    float *sums;      /* [T, max_rank] */
    void *ranks;      /* elements [T, max_rank] */
    float *gate_sums; /* [tartlet_lora_gate_rows(), N of gate and up] */
} lora_memory;

int tartlet_has_lora(const lora_rows *rows, int place);
void tartlet_lora_down(const lora_rows *rows, int place, int kind, const void *inputs, const lora_memory *memory,
                       thread_part part);
void tartlet_lora_up(const lora_rows *rows, int place, int kind, int first_row, int end_row, float *outputs,
                     const lora_memory *memory, thread_part part);
void tartlet_lora_gate(const lora_rows *rows, const tartlet_matrix *matrix, const void *inputs, void *gated,
                       const lora_memory *memory, float *scratch, thread_part part);

/* heads.c: queries rotated and scaled, keys and values written into their pages. */
size_t tartlet_block_bytes(const tartlet_model *model);
uint8_t *tartlet_page_block(const tartlet_model *model, int layer, int64_t page_id, int kv_head);
void tartlet_prepare_heads(const tartlet_model *model, int layer, const tartlet_step *step, const float *qkv,
                           void *queries, thread_part part);

/* attention.c: queries of one key-value head and of consecutive rows, at most MAX_QUERIES; in a tree, of one row. */
typedef struct {
    const int64_t *page_table;
    const tartlet_segment *tree; /* or NULL */
    int first_row;
    int num_rows;
    int kv_head;
    int first_head;
    int num_heads;
} attention_item;

typedef struct {
    float *scores;       /* [MAX_QUERIES, context_len padded to a page] */
    void *probabilities; /* elements, of the same shape */
    const uint8_t **blocks; /* [2 * pages + BLOCKS_AHEAD] */
    float *tail_factors;    /* [pages of the longest tail, PAGE_SIZE] */
    uint8_t *tail_values;   /* [pages of the longest tail] blocks */
} attention_scratch;

int tartlet_max_queries(void);
void tartlet_attend(const tartlet_model *model, int layer, const attention_item *item, const attention_item *next,
                    const int64_t *slots, const void *queries, void *attended, int capacity,
                    attention_scratch *scratch);

#endif
