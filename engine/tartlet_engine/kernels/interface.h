/* What Python sees of the kernels: read by the compiler and by cffi, so there is nothing but declarations here.
 *
 * Legend: T rows (tokens) of a step, R rows whose logits are wanted, N outputs and K inputs of a matrix, H query heads,
 * G key-value heads, D head_dim. "Padded" means rounded up: N and K to 32, D to 16. Padding holds zeros. */

/* How a matrix is held. In the last two, 32 inputs of one output share a scale (and a minimum). */
enum tartlet_format { TARTLET_FLOAT32 = 0, TARTLET_BFLOAT16 = 1, TARTLET_INT8 = 2, TARTLET_INT4 = 3 };

/* What happens to the sums of a matrix product. */
enum tartlet_output_mode { TARTLET_STORE = 0, TARTLET_ADD = 1, TARTLET_GATE = 2 };

typedef struct {
    int format;
    int num_outputs;    /* padded */
    int num_inputs;     /* padded */
    const void *panels; /* laid out by packing.py */
    const float *bias;  /* float[N], or NULL */
} tartlet_matrix;

typedef struct {
    tartlet_matrix qkv;              /* rows: H query heads, G key heads, G value heads, each of D padded */
    tartlet_matrix attention_output; /* columns: H heads, each of D padded */
    tartlet_matrix gate_up;          /* rows: 16 of gate, the 16 of up that belong to them, and so on */
    tartlet_matrix down;
    const float *attention_norm; /* float[hidden_size padded to 32] */
    const float *mlp_norm;
    const float *query_norm; /* float[D padded], or NULL */
    const float *key_norm;
    int sliding_window; /* tokens that a query sees, itself included; 0: all */
} tartlet_layer;

typedef struct {
    int format; /* TARTLET_FLOAT32: everything in float32. Otherwise keys and values are bfloat16. */
    int num_layers;
    int hidden_size;
    int num_heads;
    int num_kv_heads;
    int head_dim;
    int num_pages; /* of 16 tokens each */
    int max_rank;  /* of all adapters, padded; 0: there are none */
    float norm_epsilon;
    float attention_scale;
    const tartlet_layer *layers;
    tartlet_matrix embedding; /* rows: tokens; the same panels as `head` where they are tied */
    tartlet_matrix head;
    const float *final_norm;
    const float *cosines; /* float[context_len, D / 2] */
    const float *sines;
    void *kv_pool; /* [layer][page][kv head]{ keys, values }, as heads.c draws it */
} tartlet_model;

/* Consecutive rows whose keys and values go into consecutive slots of one sequence.
 *
 * Without a tree, a row sees its own slot and those before it. With one, it sees all slots before `tail_start`, and of
 * the slots `tail_start + j` those whose byte `visible[row, j]` is not 0, among them its own. A sliding window counts
 * the slots that the row sees. */
typedef struct {
    int first_row;
    int num_rows;
    const int64_t *page_table; /* pages of the sequence, as far as its last row reaches */
    const uint8_t *visible;    /* [num_rows, tail_len], or NULL: no tree */
    int tail_start;
    int tail_len; /* at most as many as the workspace has rows */
} tartlet_segment;

/* What a LoRA adapter adds to the outputs of a matrix: up (down x). Nothing, if they have no outputs. */
typedef struct {
    tartlet_matrix down; /* its outputs are the ranks, padded */
    tartlet_matrix up;   /* outputs as the matrix that it adds to; the scale is in the weights */
} tartlet_lora;

enum tartlet_lora_place {
    TARTLET_LORA_QKV = 0,
    TARTLET_LORA_ATTENTION_OUTPUT = 1,
    TARTLET_LORA_GATE_UP = 2,
    TARTLET_LORA_DOWN = 3
};

typedef struct {
    tartlet_lora loras[4]; /* by tartlet_lora_place */
} tartlet_adapter_layer;

/* Consecutive rows of sequences that have the same adapter. */
typedef struct {
    int first_row;
    int num_rows;
    const tartlet_adapter_layer *layers;
} tartlet_adapter_span;

typedef struct {
    int num_rows;
    int num_segments;
    int num_logit_rows;
    int num_adapter_spans;
    const int64_t *token_ids;  /* [T] */
    const int64_t *positions;  /* [T]: by which heads are rotated */
    const int64_t *slots;      /* [T]: the row's place in its sequence */
    const int64_t *page_ids;   /* [T]: where the row's key and value go */
    const int64_t *offsets;    /* [T]: the slot in that page */
    const int64_t *logit_rows; /* [R] */
    const tartlet_segment *segments;
    const tartlet_adapter_span *adapter_spans; /* in the order of their rows */
    float *logits; /* [R, N of the head] */
} tartlet_step;

/* Threads that compute steps together. */
typedef struct tartlet_team tartlet_team;
tartlet_team *tartlet_team_start(int num_threads);
void tartlet_team_stop(tartlet_team *team);

/* Compute one step, in a workspace of tartlet_workspace_bytes() made for as many rows and as long a context, or for
 * more; it must be zeroed when it is new. No row of the step sees more than context_len tokens. */
size_t tartlet_workspace_bytes(const tartlet_model *model, int num_rows, int context_len, int num_threads);
void tartlet_compute_step(const tartlet_model *model, const tartlet_step *step, tartlet_team *team, void *workspace,
                          int num_rows, int context_len);

/* Single kernels, on the calling thread alone: for tests. Elements are float, or bfloat16 where
 * tartlet_element_bytes() says 2. */
int tartlet_element_bytes(int format);
void tartlet_store_elements(int format, const float *values, int count, void *elements);
void tartlet_multiply(const tartlet_matrix *matrix, const void *inputs, int num_rows, int mode, float *outputs,
                      void *gated, float *scratch);
size_t tartlet_multiply_scratch_floats(const tartlet_matrix *matrix, int num_rows);
void tartlet_multiply_adapted(const tartlet_matrix *matrix, int place, const tartlet_adapter_span *spans, int num_spans,
                              const void *inputs, int num_rows, int mode, float *outputs, void *gated, float *scratch,
                              int max_rank, float *sums, void *ranks, float *gate_sums);
int tartlet_lora_gate_rows(void);
void tartlet_embed(const tartlet_matrix *embedding, int64_t token_id, float *row);
void tartlet_normalize(int format, const float *row, const float *weight, int size, int padded_size, float epsilon,
                       void *elements);
void tartlet_exponentials(const float *values, int count, float *results);

/* Layer 0 of a step from its qkv product, float[T, N], to the attended values, float[T, H * D padded]. */
void tartlet_attend_alone(const tartlet_model *model, const tartlet_step *step, const float *qkv, void *workspace,
                          int num_rows, int context_len, float *attended);
