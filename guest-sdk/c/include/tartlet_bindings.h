/* Made of tartlet:inferlet@0.1.0 by `make bindings`; do not edit. */
#ifndef TARTLET_BINDINGS_H
#define TARTLET_BINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every function and type of the contract. tartlet.h has what makes them comfortable; include that.
 *
 * Memory. What a function returns is the program's: its strings and lists are freed with the function that is named
 * after their type, or with the run. What a function is given stays the program's; it has been read when the function
 * returns. A string that comes from the host ends with a NUL beyond its length.
 *
 * Failures. A function that can be refused has a last parameter `failure`. If it is NULL, a refusal ends the run, and
 * the run's error says what was refused and why. Otherwise it is written there, and the function returns zeros. As
 * long as a failure is written there, calls with it do nothing and return zeros, too: one look after several is enough.
 *
 * Handles are the program's until it drops them; all are dropped with the run. */

/** Text in UTF-8. */
typedef struct { char *data; size_t length; } tartlet_string;
void tartlet_string_free(tartlet_string *value);

/* ---- log ---------------------------------------------------------------------
 * What the run tells people. Both count towards the run's output limit.
 */

/** How much a log line matters. */
typedef enum : uint8_t {
  TARTLET_LEVEL_TRACE,
  TARTLET_LEVEL_DEBUG,
  TARTLET_LEVEL_INFO,
  TARTLET_LEVEL_WARN,
  TARTLET_LEVEL_ERROR,
} tartlet_level;

/** Output text, as it is: newlines are the program's own. */
void tartlet_log_print(tartlet_string text);

/** One log line. */
void tartlet_log_log(tartlet_level level, tartlet_string message);

/* ---- runs --------------------------------------------------------------------
 * The run itself.
 */

/** Who am I. */
typedef struct {
  /** The run's id. */
  tartlet_string id;
  /** The inferlet's name. */
  tartlet_string inferlet;
  /** The tenant on whose behalf it runs. */
  tartlet_string tenant;
  /** What the run's random choices come from: the same seed and input give the same run. */
  uint64_t seed;
} tartlet_run_info;
void tartlet_run_info_free(tartlet_run_info *value);

typedef struct { bool is_some; uint64_t value; } tartlet_option_u64;

/** One limit, and what has been used of it. */
typedef struct {
  /** As the host's own settings call it, for example `max_tokens`, `max_kv_pages`, `max_wall_ms`. */
  tartlet_string name;
  uint64_t used;
  /** Nothing: not limited. */
  tartlet_option_u64 allowed;
} tartlet_limit;
void tartlet_limit_free(tartlet_limit *value);

/** Who am I. */
tartlet_run_info tartlet_runs_info(void);

typedef struct { tartlet_limit *data; size_t length; } tartlet_list_limit;
void tartlet_list_limit_free(tartlet_list_limit *value);

/** The run's limits. Exceeding one ends the run. */
tartlet_list_limit tartlet_runs_limits(void);

/* ---- types -------------------------------------------------------------------
 * What the other interfaces share.
 */

/** A vocabulary id of the model that the context belongs to. */
typedef uint32_t tartlet_token;

/** The id of something that a run can wait for with `events.poll`. Ids are the run's own and are never reused. */
typedef uint32_t tartlet_event;

/** Why a call could not be carried out. */
typedef enum : uint8_t {
  /** An argument is out of its range; the message names it. */
  TARTLET_ERROR_CODE_INVALID_ARGUMENT,
  /** There is nothing by that name or id. */
  TARTLET_ERROR_CODE_NOT_FOUND,
  /** The name is taken. */
  TARTLET_ERROR_CODE_ALREADY_EXISTS,
  /** The run may not do this. */
  TARTLET_ERROR_CODE_PERMISSION_DENIED,
  /** A budget of the run or its tenant would be exceeded. */
  TARTLET_ERROR_CODE_QUOTA_EXCEEDED,
  /** The request can never fit into the KV cache, or the cache is full and nothing can make room. */
  TARTLET_ERROR_CODE_KV_EXHAUSTED,
  /** The context would grow longer than the model's context length. */
  TARTLET_ERROR_CODE_CONTEXT_OVERFLOW,
  /** It took longer than allowed. */
  TARTLET_ERROR_CODE_DEADLINE_EXCEEDED,
  /** It was cancelled. */
  TARTLET_ERROR_CODE_CANCELLED,
  /** The model or the host cannot do this. */
  TARTLET_ERROR_CODE_UNSUPPORTED,
  /** Not now: the context is busy, or the engine is not there. */
  TARTLET_ERROR_CODE_UNAVAILABLE,
  /** A fault of Tartlet's own. */
  TARTLET_ERROR_CODE_INTERNAL,
  /** It waits for the run itself, all of which waits: nobody is left who could end the wait. */
  TARTLET_ERROR_CODE_DEADLOCK,
  /** Another program that it relied on failed, such as a controller: the message has what it said. */
  TARTLET_ERROR_CODE_PROGRAM_FAILED,
} tartlet_error_code;

/** A refused or failed call: what happened, and what to do about it. */
typedef struct {
  tartlet_error_code code;
  /** What happened, with the numbers: what was asked, what is allowed. */
  tartlet_string message;
  /** What to do about it; empty if there is nothing to add. */
  tartlet_string hint;
} tartlet_error;
void tartlet_error_free(tartlet_error *value);

/** Where a refused call says why. Begin with zeros: `call` is NULL as long as none was refused. */
typedef struct {
  /** The function that was refused. */
  const char *call;
  tartlet_error error;
} tartlet_failure;

/* ---- events ------------------------------------------------------------------
 * Waiting. Calls that take time give an event at once; `poll` waits for any of several. Each SDK turns this into its
 * language's own async.
 *
 * An event is level-triggered: once ready it stays ready, until it is dropped or (a generation's event) until what it
 * announced has been read. An id that the run does not hold ends the run with `invalid_handle`.
 */

typedef struct { tartlet_event *data; size_t length; } tartlet_list_event;
void tartlet_list_event_free(tartlet_list_event *value);

/** Waits until at least one of `events` is ready, or `timeout-ns` has passed, and returns the ready ones, in the order
 * given; an empty list means that the time has passed. A timeout of 0 only looks. Waiting for no event without a
 * timeout would be for ever, and ends the run with `deadlock`. Waiting without a timeout for nothing but what only the
 * run itself can bring about, such as changes of its variables, would be for ever, too: these events become ready at
 * once, and their outcome is the error `deadlock`. */
tartlet_list_event tartlet_events_poll(tartlet_list_event events, tartlet_option_u64 timeout_ns);

/** An event that becomes ready after `delay-ns` nanoseconds. */
tartlet_event tartlet_events_timer(uint64_t delay_ns);

/** What became of the operation behind a ready event (a timer's is always ok). Frees the event. An event that is not
 * ready yet is an error, `unavailable`, and stays. */
void tartlet_events_outcome(tartlet_event event, tartlet_failure *failure);

/** Frees the event. The operation behind it, if there is one, goes on. */
void tartlet_events_drop_event(tartlet_event event);

/* ---- models ------------------------------------------------------------------
 * The models that the host serves, and their tokenizers.
 */

typedef struct { tartlet_token *data; size_t length; } tartlet_list_token;
void tartlet_list_token_free(tartlet_list_token *value);

typedef struct { tartlet_string *data; size_t length; } tartlet_list_string;
void tartlet_list_string_free(tartlet_list_string *value);

/** Facts about a model. */
typedef struct {
  /** The name it is opened by. */
  tartlet_string name;
  /** The architecture, as the model's configuration names it, for example `LlamaForCausalLM`. */
  tartlet_string architecture;
  /** The greatest length of a context, in tokens. */
  uint32_t context_length;
  /** How many token ids there are: valid ids are 0 to this, exclusive. */
  uint32_t vocabulary_size;
  /** Tokens in one page of the KV cache. */
  uint32_t page_size;
  /** The tokens that end a turn or a text; each ends a generation unless told otherwise. */
  tartlet_list_token eos_tokens;
  /** What the model can do beyond plain text, for example `chat` (it has a chat template), `evict` (tokens can be
   * evicted from its contexts) or `constraints` (generations can follow them). */
  tartlet_list_string features;
  /** The names of the LoRA adapters that contexts can be made with. */
  tartlet_list_string adapters;
} tartlet_models_model_info;
void tartlet_models_model_info_free(tartlet_models_model_info *value);

/** A model that contexts can be made of. */
typedef struct { int32_t handle; } tartlet_model;
void tartlet_model_drop(tartlet_model model);

typedef struct { bool is_some; tartlet_string value; } tartlet_option_string;
void tartlet_option_string_free(tartlet_option_string *value);

/** Opens the model of that name; without a name the host's default. */
tartlet_model tartlet_model_open(tartlet_option_string name, tartlet_failure *failure);

/** The model's facts. */
tartlet_models_model_info tartlet_model_info(tartlet_model self);

/** Token ids of a text. Special tokens that are written out in it (such as `<|im_end|>`) become their ids. */
tartlet_list_token tartlet_model_tokenize(tartlet_model self, tartlet_string text, tartlet_failure *failure);

/** The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD. */
tartlet_string tartlet_model_detokenize(tartlet_model self, tartlet_list_token tokens, tartlet_failure *failure);

typedef struct { uint8_t *data; size_t length; } tartlet_list_u8;
void tartlet_list_u8_free(tartlet_list_u8 *value);

/** The bytes of one token, which need not be whole characters. */
tartlet_list_u8 tartlet_model_token_bytes(tartlet_model self, tartlet_token token, tartlet_failure *failure);

/** The bytes of `count` tokens from `first` on, or of those that there are: each byte as the character of that number
 * (Latin-1), and U+0100 after each token. For all tokens at once, one call instead of tens of thousands. */
tartlet_string tartlet_model_vocabulary(tartlet_model self, tartlet_token first, uint32_t count,
    tartlet_failure *failure);

typedef struct { tartlet_models_model_info *data; size_t length; } tartlet_list_models_model_info;
void tartlet_list_models_model_info_free(tartlet_list_models_model_info *value);

/** The facts of every model that the run may open, the default first. */
tartlet_list_models_model_info tartlet_models_list_models(void);

/* ---- constraints -------------------------------------------------------------
 * What a generation may write: JSON of a schema, texts that match, one of several; and sets of tokens.
 *
 * A constraint is compiled on the host, and masks out every token that it does not allow; tokens that it leaves no choice
 * about are appended without being sampled. Masks and grammars stay on the host. A constraint begins with a generation:
 * it says nothing about what is in the context already. A model whose features do not have `constraints` has none, and
 * no matchers; masks it has.
 */

/** One constraint, which any number of generations can follow, one after the other or at once. Compiling goes on after
 * the call: the text is checked then. Dropping it does not concern generations that have started with it.
 *
 * The same constraint is compiled once for a tenant. What it may take is bounded, in time, memory and size of the text:
 * beyond that, its error is `quota-exceeded`. */
typedef struct { int32_t handle; } tartlet_constraint;
void tartlet_constraint_drop(tartlet_constraint constraint);

/** A set of tokens, eos tokens like any other. It stays on the host, so it costs nothing to attach it to a generation, and
 * a microsecond or so to put it together with others. A run may hold 1,024 of them. */
typedef struct { int32_t handle; } tartlet_mask;
void tartlet_mask_drop(tartlet_mask mask);

/** Where a matcher is. */
typedef struct {
  /** Tokens that come next, whatever is sampled: the text that the constraint leaves no choice about, as the model
   * writes it. The matcher has not gone through them. */
  tartlet_list_token forced;
  /** What it has gone through is a whole text of the constraint: it may end here. */
  bool may_end;
  /** And nothing may follow. */
  bool is_complete;
  /** Why nothing is allowed here, for instance because of a token that was not; going back over it brings it back. */
  tartlet_option_string problem;
} tartlet_place;
void tartlet_place_free(tartlet_place *value);

/** A way through a constraint that the program goes by itself, for its own sampling, scoring or splicing. Its work is
 * done beside the model's, and charged to the tenant: after each move wait for `ready`. What it says before that is
 * the error `unavailable`. It goes through at most as many tokens as the model's context has. */
typedef struct { int32_t handle; } tartlet_matcher;
void tartlet_matcher_drop(tartlet_matcher matcher);

/** A JSON text that a JSON schema describes. It is written on one line, with a space after each comma and colon.
 * Keywords that cannot be followed are an error. */
tartlet_constraint tartlet_constraint_json_schema(tartlet_model model, tartlet_string schema, tartlet_failure *failure);

/** A text that matches a regular expression as a whole, in the syntax of Rust's regex. */
tartlet_constraint tartlet_constraint_regex(tartlet_model model, tartlet_string pattern, tartlet_failure *failure);

/** A text of a context-free grammar in llguidance's variant of Lark; it begins with the rule `start`. */
tartlet_constraint tartlet_constraint_lark(tartlet_model model, tartlet_string grammar, tartlet_failure *failure);

/** One of several texts. */
tartlet_constraint tartlet_constraint_choices(tartlet_model model, tartlet_list_string texts, tartlet_failure *failure);

/** A run of whole words out of a text, as they stand there: a quotation. */
tartlet_constraint tartlet_constraint_substring(tartlet_model model, tartlet_string text, tartlet_failure *failure);

/** Any number of tokens out of a set. */
tartlet_constraint tartlet_constraint_tokens(tartlet_model model, tartlet_list_token allowed, tartlet_failure *failure);

/** Any number of tokens out of a mask, which must not be empty. */
tartlet_constraint tartlet_constraint_of_mask(tartlet_mask mask, tartlet_failure *failure);

typedef struct { uint32_t *data; size_t length; } tartlet_list_u32;
void tartlet_list_u32_free(tartlet_list_u32 *value);

/** What all of some compiled constraints of the run allow, by their ids. A token is allowed where each of them allows
 * it, so it can come to a place where nothing is: that is an error of the generation. Put regular expressions into
 * one lark terminal with `&` where that matters. At most 8 can be put together, parts of parts included. */
tartlet_constraint tartlet_constraint_all_of(tartlet_list_u32 parts, tartlet_failure *failure);

/** What any of some compiled constraints of the run allows, by their ids: at each place what those allow that have
 * allowed everything before it. */
tartlet_constraint tartlet_constraint_any_of(tartlet_list_u32 parts, tartlet_failure *failure);

/** The event that becomes ready when it is compiled, or cannot be: its outcome says why. The same at every call; it
 * goes away with its outcome, or with the constraint. */
tartlet_event tartlet_constraint_ready(tartlet_constraint self);

/** The number that `generation.options` takes. */
uint32_t tartlet_constraint_id(tartlet_constraint self);

/** These tokens. */
tartlet_mask tartlet_mask_tokens(tartlet_model model, tartlet_list_token tokens, tartlet_failure *failure);

typedef struct { uint64_t *data; size_t length; } tartlet_list_u64;
void tartlet_list_u64_free(tartlet_list_u64 *value);

/** The tokens whose bits are set: bit `t % 64` of word `t / 64` is that of token t. There must be as many words as the
 * vocabulary needs, and no bits beyond it. */
tartlet_mask tartlet_mask_words(tartlet_model model, tartlet_list_u64 words, tartlet_failure *failure);

/** All tokens of the vocabulary. */
tartlet_mask tartlet_mask_all(tartlet_model model, tartlet_failure *failure);

/** The tokens that this and all of these masks have, by their ids; at most 64 of them, here and below. */
tartlet_mask tartlet_mask_intersection(tartlet_mask self, tartlet_list_u32 others, tartlet_failure *failure);

/** The tokens that this or any of these masks has. */
tartlet_mask tartlet_mask_union(tartlet_mask self, tartlet_list_u32 others, tartlet_failure *failure);

/** The tokens that this one does not have. */
tartlet_mask tartlet_mask_complement(tartlet_mask self, tartlet_failure *failure);

/** Those of these tokens that this one has. */
tartlet_mask tartlet_mask_restrict(tartlet_mask self, tartlet_list_token tokens, tartlet_failure *failure);

/** How many tokens it has. */
uint32_t tartlet_mask_count(tartlet_mask self);

/** Whether it has a token. */
bool tartlet_mask_allows(tartlet_mask self, tartlet_token token, tartlet_failure *failure);

/** The number that `generation.options` and functions of other masks take. */
uint32_t tartlet_mask_id(tartlet_mask self);

/** Begins at the beginning of a compiled constraint. */
tartlet_matcher tartlet_matcher_begin(tartlet_constraint constraint, tartlet_failure *failure);

/** The event that becomes ready whenever it has arrived, with an error if it cannot: `quota-exceeded` if the tenant
 * follows too many constraints. The same at every call; it goes away with the matcher. */
tartlet_event tartlet_matcher_ready(tartlet_matcher self);

/** Where it is. */
tartlet_place tartlet_matcher_place(tartlet_matcher self, tartlet_failure *failure);

/** The tokens that may come next, eos tokens where it may end. Of a text that is forced, the one token with which the
 * model writes it. */
tartlet_mask tartlet_matcher_mask(tartlet_matcher self, tartlet_failure *failure);

/** Goes on by tokens, allowed or not. */
void tartlet_matcher_advance(tartlet_matcher self, tartlet_list_token tokens, tartlet_failure *failure);

/** Goes back over so many tokens. */
void tartlet_matcher_rollback(tartlet_matcher self, uint32_t count, tartlet_failure *failure);

/** Makes another matcher at the same place, which goes its own way. */
tartlet_matcher tartlet_matcher_fork(tartlet_matcher self, tartlet_failure *failure);

/* ---- contexts ----------------------------------------------------------------
 * Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache.
 */

/** Whose words a chat message is. */
typedef enum : uint8_t {
  TARTLET_ROLE_SYSTEM,
  TARTLET_ROLE_USER,
  TARTLET_ROLE_ASSISTANT,
  /** The result of a tool call. */
  TARTLET_ROLE_TOOL,
} tartlet_role;

/** How a context is saved. */
typedef struct {
  /** Nanoseconds for which it is kept; without it, until it is deleted. */
  tartlet_option_u64 ttl_ns;
  /** Take the place of what is saved under the name; otherwise that is an error, `already-exists`. */
  bool overwrite;
} tartlet_save_options;

/** What there is to know of a saved context. */
typedef struct {
  /** The name it is opened by. */
  tartlet_string name;
  /** The model that it was saved with, and can be opened with. */
  tartlet_string model;
  /** The adapter that it was made with, which the model must still have. */
  tartlet_option_string adapter;
  /** Number of tokens. */
  uint32_t tokens;
  /** What it takes of the tenant's quota. */
  uint64_t bytes;
  /** Nanoseconds for which it is still kept; nothing: until it is deleted. */
  tartlet_option_u64 expires_in_ns;
} tartlet_saved_context;
void tartlet_saved_context_free(tartlet_saved_context *value);

/** One sequence of tokens. Operations on a context happen in the order in which they are asked for. Filling only
 * appends tokens: they are computed when a generation, a fork or a flush needs them.
 *
 * While a generation runs on it, or a forward pass on it is neither committed nor discarded, a context is busy: it can be
 * read and forked (a fork starts after the last token generated so far, and has none of a pass), everything else is an
 * error, `unavailable`. */
typedef struct { int32_t handle; } tartlet_context;
void tartlet_context_drop(tartlet_context context);

/** A saved context on its way. Dropping it before the context is taken gives it up. */
typedef struct { int32_t handle; } tartlet_opening;
void tartlet_opening_drop(tartlet_opening opening);

/** An empty context. With the name of one of the model's LoRA adapters, its tokens are computed as if the adapter
 * were merged into the model, and so are those of its forks; an unknown name is an error, `not-found`. Contexts
 * with different adapters share no pages. */
tartlet_context tartlet_context_create(tartlet_model model, tartlet_option_string adapter, tartlet_failure *failure);

/** Appends a text as it is. Special tokens written out in it become their ids. */
void tartlet_context_fill(tartlet_context self, tartlet_string text, tartlet_failure *failure);

/** Appends token ids. */
void tartlet_context_fill_tokens(tartlet_context self, tartlet_list_token tokens, tartlet_failure *failure);

/** Appends a chat message in the form that the model's chat template gives it, after closing an assistant's turn
 * that a generation left open. Special tokens in the text stay text. */
void tartlet_context_fill_message(tartlet_context self, tartlet_role role, tartlet_string text,
    tartlet_failure *failure);

/** Begins the assistant's turn, as the chat template writes it. A generation does so by itself if the last thing
 * filled was a chat message of another role. */
void tartlet_context_cue(tartlet_context self, tartlet_failure *failure);

/** Computes what has been filled. The event becomes ready when it is done; its outcome says whether it could be. */
tartlet_event tartlet_context_flush(tartlet_context self, tartlet_failure *failure);

/** A context with the same tokens, which shares the pages: no page is copied and nothing is computed twice. What the
 * two append afterwards does not concern the other. */
tartlet_context tartlet_context_fork(tartlet_context self, tartlet_failure *failure);

/** Number of tokens. */
uint32_t tartlet_context_length(tartlet_context self);

/** Number of positions that are taken: those of its tokens, and those of tokens that were evicted before them. The
 * model's context length less this is how many tokens can be added. */
uint32_t tartlet_context_positions(tartlet_context self);

/** All tokens, in order. */
tartlet_list_token tartlet_context_tokens(tartlet_context self);

/** Drops the tokens after the first `length`. */
void tartlet_context_truncate(tartlet_context self, uint32_t length, tartlet_failure *failure);

/** Drops the tokens from `start` to before `end` out of the middle, once what has been filled is computed; the last
 * token must stay. Tokens that come later do not see them: it is as if they were masked. What is kept stays as it was
 * computed, at its positions, and positions go on after the last token: what was evicted still counts for the context
 * length. Truncating to before the gap takes it back.
 *
 * The event becomes ready when that is done; its outcome says whether it could be. `length` and `tokens` change then,
 * and other calls on the context wait for it. `unsupported` if the model's features do not have `evict`. */
tartlet_event tartlet_context_evict(tartlet_context self, uint32_t start, uint32_t end, tartlet_failure *failure);

/** Saves the context under a name that belongs to the tenant, with its keys and values, after computing what has been
 * filled. The event becomes ready when that is done; its outcome says whether it could be: `already-exists`,
 * `quota-exceeded`. What is done to the context meanwhile does not concern what is saved. A save outlives its run
 * once the event is ready; a run that ends before may have saved it whole or not at all.
 *
 * A name has 1 to 128 letters (a-z, A-Z), digits and the characters `. _ : / -`, and begins with a letter or a digit. */
tartlet_event tartlet_context_save(tartlet_context self, tartlet_string name, const tartlet_save_options *options,
    tartlet_failure *failure);

/** Opens a saved context: the same tokens, keys, values and state of the chat, read and not computed. Each opening
 * gives a context of its own. Errors come when it is taken: `not-found`, also for a file that is damaged, and
 * `unsupported` if it was saved with another model, or with an adapter that is not there or is another one now. */
tartlet_opening tartlet_context_open(tartlet_model model, tartlet_string name, tartlet_failure *failure);

/** The event that becomes ready when the context can be taken. The same at every call; it goes away with the opening. */
tartlet_event tartlet_opening_ready(tartlet_opening self);

/** The context, once; or why it cannot be opened. `unavailable` before the event is ready. */
tartlet_context tartlet_opening_take(tartlet_opening self, tartlet_failure *failure);

typedef struct { tartlet_saved_context *data; size_t length; } tartlet_list_saved_context;
void tartlet_list_saved_context_free(tartlet_list_saved_context *value);

/** The saved contexts of the tenant, by name, those of other models too. */
tartlet_list_saved_context tartlet_contexts_list_saved(tartlet_failure *failure);

/** Deletes a saved context of the tenant. Contexts that were opened from it are not concerned. */
void tartlet_contexts_delete_saved(tartlet_string name, tartlet_failure *failure);

/* ---- generation --------------------------------------------------------------
 * Generating text from a context.
 */

typedef struct { tartlet_token f0; float f1; } tartlet_tuple_token_f32;

typedef struct { tartlet_tuple_token_f32 *data; size_t length; } tartlet_list_tuple_token_f32;
void tartlet_list_tuple_token_f32_free(tartlet_list_tuple_token_f32 *value);

/** How the next token is chosen. The steps apply in this order: penalties and bias, constraint, temperature, top-k,
 * top-p, min-p. */
typedef struct {
  /** 0 takes the most likely token (greedy), whatever the other fields say. */
  float temperature;
  /** Only the k most likely tokens; 0 for all. */
  uint32_t top_k;
  /** Only the most likely tokens that together have this probability; 1 for all. */
  float top_p;
  /** Only tokens at least this fraction as likely as the most likely one; 0 for all. */
  float min_p;
  /** Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none. */
  float repetition_penalty;
  /** Subtracted from the logits of tokens generated so far; 0 for none. */
  float presence_penalty;
  /** Subtracted once for each time that a token was generated so far; 0 for none. */
  float frequency_penalty;
  /** Added to the logits of single tokens. */
  tartlet_list_tuple_token_f32 logit_bias;
  /** The same seed gives the same tokens, whatever else runs. Without one, the run draws it. */
  tartlet_option_u64 seed;
} tartlet_sampling;
void tartlet_sampling_free(tartlet_sampling *value);

typedef struct { bool is_some; uint32_t value; } tartlet_option_u32;

/** When to stop. Whatever happens first counts; the context length always does. */
typedef struct {
  /** At most this many tokens; without it, up to the context length. */
  tartlet_option_u32 max_tokens;
  /** Stop after any of these tokens. */
  tartlet_list_token tokens;
  /** Stop when the text contains any of these, even when it spans several tokens. */
  tartlet_list_string strings;
  /** Go on after the model's own eos tokens. */
  bool ignore_eos;
} tartlet_stop_conditions;
void tartlet_stop_conditions_free(tartlet_stop_conditions *value);

/** How the next tokens are guessed. Where the context's last tokens stood before, in the expected text or in the context
 * itself, what followed them there is guessed to follow now. The model checks a guess in one step, and the sampler
 * chooses each token as always: a guess that is right saves a step, one that is wrong costs the rows that were computed
 * for it. */
typedef struct {
  /** Tokens guessed for one step, at most: 1 to 32. Fewer, the less comes of them. */
  uint32_t max_draft;
  /** How many of the last tokens must have stood there: 1 to 8. */
  uint32_t ngram;
  /** A text that is expected, at least in parts, such as the one that is to be edited: at most 16,384 tokens. The
   * generation is guessed to begin with it. */
  tartlet_list_token expected;
} tartlet_speculation;
void tartlet_speculation_free(tartlet_speculation *value);

typedef struct { bool is_some; tartlet_speculation value; } tartlet_option_speculation;
void tartlet_option_speculation_free(tartlet_option_speculation *value);

/** What else is wanted. */
typedef struct {
  /** Announce what comes through the event; otherwise the event becomes ready once, at the end. */
  bool streaming;
  /** If streaming: nanoseconds from a read to the next announcement, at least, but for the end. What comes meanwhile
   * joins the next chunk. 0 announces every token; the fewer chunks, the less of the processor a program takes from
   * the model. */
  uint64_t chunk_interval_ns;
  /** Report the log-probability of each chosen token and of this many most likely ones (at most 20). */
  tartlet_option_u32 log_probabilities;
  /** Generate only what this constraint of the run allows, by its `id`. It must be compiled. The model's eos tokens are
   * allowed where the constraint may end. */
  tartlet_option_u32 constraint;
  /** Guess the next tokens, so that several come of one step. What is generated does not depend on it. */
  tartlet_option_speculation speculation;
  /** Sample only tokens of this mask of the run, by its `id`, besides what the constraint allows. Where both leave
   * nothing, it ends as `complete` if the constraint may end, and with an error otherwise. */
  tartlet_option_u32 mask;
} tartlet_generation_options;
void tartlet_generation_options_free(tartlet_generation_options *value);

/** Why a generation ended. */
typedef enum : uint8_t {
  /** The model produced one of its eos tokens. */
  TARTLET_FINISH_REASON_EOS,
  /** It produced one of the tokens asked for. */
  TARTLET_FINISH_REASON_STOP_TOKEN,
  /** The text contains one of the strings asked for. */
  TARTLET_FINISH_REASON_STOP_STRING,
  /** The greatest number of tokens, or the context length, was reached. */
  TARTLET_FINISH_REASON_LENGTH,
  /** The constraint allows nothing more. */
  TARTLET_FINISH_REASON_COMPLETE,
  /** It was cancelled. */
  TARTLET_FINISH_REASON_CANCELLED,
  /** Its controller stopped it. */
  TARTLET_FINISH_REASON_STOPPED,
  /** All of the run waited, and nobody was left who could end that. */
  TARTLET_FINISH_REASON_DEADLOCK,
} tartlet_finish_reason;

/** What a generation used. */
typedef struct {
  /** Tokens in the context when it began. */
  uint32_t prompt_tokens;
  /** Of these, tokens whose keys and values were there already: from a fork, a flush, an earlier generation, a saved
   * context, or the prefix cache. */
  uint32_t cached_tokens;
  /** Tokens generated, forced ones included. */
  uint32_t generated_tokens;
  /** Of these, tokens that the constraint left no choice about: they were appended without being sampled. */
  uint32_t forced_tokens;
  /** Tokens guessed by speculation. */
  uint32_t draft_tokens;
  /** Of these, tokens that were generated indeed: they took no step of their own. */
  uint32_t accepted_tokens;
  /** Pages that the context held at the end. */
  uint32_t pages;
  /** Of these, pages that it shared with other contexts. */
  uint32_t shared_pages;
  /** Nanoseconds from the call to the first token, and to the end. */
  uint64_t first_token_ns;
  uint64_t total_ns;
} tartlet_usage;

/** The log-probability of a token. */
typedef struct {
  tartlet_token token;
  /** Natural logarithm, before temperature and after penalties, bias and constraint: a forced token has 0. */
  float log_probability;
} tartlet_generation_token_log_probability;

typedef struct { tartlet_generation_token_log_probability *data; size_t length;
    } tartlet_list_generation_token_log_probability;
void tartlet_list_generation_token_log_probability_free(tartlet_list_generation_token_log_probability *value);

/** Log-probabilities at one generated token. */
typedef struct {
  tartlet_generation_token_log_probability chosen;
  /** The most likely tokens, most likely first. */
  tartlet_list_generation_token_log_probability top;
} tartlet_position_log_probabilities;
void tartlet_position_log_probabilities_free(tartlet_position_log_probabilities *value);

/** How a generation ended. */
typedef struct {
  tartlet_finish_reason reason;
  /** What stopped it, when that was a string. */
  tartlet_option_string stop_string;
  tartlet_usage usage;
} tartlet_finish;
void tartlet_finish_free(tartlet_finish *value);

typedef struct { tartlet_position_log_probabilities *data; size_t length; } tartlet_list_position_log_probabilities;
void tartlet_list_position_log_probabilities_free(tartlet_list_position_log_probabilities *value);

typedef struct { bool is_some; tartlet_finish value; } tartlet_option_finish;
void tartlet_option_finish_free(tartlet_option_finish *value);

/** What a generation has produced since it was last read. */
typedef struct {
  /** Whole characters only; without eos tokens, and without the string that stopped it. */
  tartlet_string text;
  /** The tokens sampled or forced, eos tokens included. Text may lag behind its tokens. */
  tartlet_list_token tokens;
  /** One for each token, if asked for. */
  tartlet_list_position_log_probabilities log_probabilities;
  /** Set in the last chunk. */
  tartlet_option_finish finish;
} tartlet_chunk;
void tartlet_chunk_free(tartlet_chunk *value);

/** One generation. Dropping it cancels it. Its tokens are appended to the context as they come; the token that
 * stopped it stays in the context. */
typedef struct { int32_t handle; } tartlet_generation;
void tartlet_generation_drop(tartlet_generation generation);

/** The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end. The same
 * at every call; it goes away with the generation. */
tartlet_event tartlet_generation_ready(tartlet_generation self);

/** What has come since the last read, which may be nothing. After the last chunk, an error. */
tartlet_chunk tartlet_generation_read(tartlet_generation self, tartlet_failure *failure);

/** Waits until there is something to read, and reads it: a poll of `ready` and a `read` in one call. The whole
 * program waits, so this is for when it has nothing else to do. */
tartlet_chunk tartlet_generation_next(tartlet_generation self, tartlet_failure *failure);

/** Ends it at the next step, with what it has. No effect if it has ended. */
void tartlet_generation_cancel(tartlet_generation self);

/** Starts a generation at the end of the context. */
tartlet_generation tartlet_generation_generate(tartlet_context context, const tartlet_sampling *sampling,
    const tartlet_stop_conditions *stop, const tartlet_generation_options *options, tartlet_failure *failure);

/* ---- controllers -------------------------------------------------------------
 * Generations that another program, a controller, steers token by token (world `controller`).
 */

/** What one sequence of the generation has produced since it was last read. */
typedef struct {
  /** Its number: 0 is the context's own; others are forks by the controller. The first chunk of a fork begins with all that was
   * generated before it forked. */
  uint32_t sequence;
  /** Characters (Unicode scalar values) at the end of the text read so far that were taken back. */
  uint32_t text_backtrack;
  /** Then added. Whole characters only, without eos tokens. */
  tartlet_string text;
  /** Tokens at the end of those read so far that were taken back. */
  uint32_t token_backtrack;
  /** Then added: sampled or forced. */
  tartlet_list_token tokens;
  /** One for each token that was sampled, kept or not, if asked for. */
  tartlet_list_position_log_probabilities log_probabilities;
  /** Set in the last chunk of the sequence. */
  tartlet_option_finish finish;
} tartlet_sequence_chunk;
void tartlet_sequence_chunk_free(tartlet_sequence_chunk *value);

typedef struct { tartlet_sequence_chunk *data; size_t length; } tartlet_list_sequence_chunk;
void tartlet_list_sequence_chunk_free(tartlet_list_sequence_chunk *value);

/** What the generation has produced since it was last read. */
typedef struct {
  /** At most one of each sequence, in the order of their numbers. */
  tartlet_list_sequence_chunk chunks;
  /** All sequences have ended, and nothing more comes. */
  bool ended;
} tartlet_controlled_chunks;
void tartlet_controlled_chunks_free(tartlet_controlled_chunks *value);

/** One generation. Dropping it cancels it. What its sequence 0 generates is appended to the context; what forks generate is only
 * in their chunks. */
typedef struct { int32_t handle; } tartlet_controlled;
void tartlet_controlled_drop(tartlet_controlled controlled);

/** The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end of all sequences. The
 * same at every call; it goes away with the generation. */
tartlet_event tartlet_controlled_ready(tartlet_controlled self);

/** What has come since the last read, which may be nothing. After the last chunks, an error.
 * If the controller fails, is late for good, or cannot be started, the error says so, `program-failed` or
 * `deadline-exceeded`, with what the controller has logged last. */
tartlet_controlled_chunks tartlet_controlled_read(tartlet_controlled self, tartlet_failure *failure);

/** Ends all sequences at the next step, with what they have. No effect if it has ended. */
void tartlet_controlled_cancel(tartlet_controlled self);

/** Starts a generation at the end of the context. The controller is a program that the host knows by this name; `config` is for its
 * `start`, which may replace the context's tokens. How many controllers a run may have at once is limited. */
tartlet_controlled tartlet_controllers_control(tartlet_context context, tartlet_string controller,
    tartlet_string config, const tartlet_sampling *sampling, const tartlet_stop_conditions *stop,
    const tartlet_generation_options *options, tartlet_failure *failure);

/* ---- forward -----------------------------------------------------------------
 * Forward passes: tokens after a context's last one are computed provisionally, the program looks at what the model says
 * of them, and keeps a part or nothing.
 *
 * Rows are numbered: row 0 is the context's last token, row `n` the n-th token of the pass. What is asked of a row is
 * about what comes after that token.
 */

typedef struct { bool is_some; tartlet_sampling value; } tartlet_option_sampling;
void tartlet_option_sampling_free(tartlet_option_sampling *value);

/** What is wanted of one row. */
typedef struct {
  uint32_t row;
  /** Sample a token. It is not appended to anything; it counts as a generated token of the run. */
  tartlet_option_sampling sampling;
  /** Which number of the seed's stream to sample by: the first token of a generation has 0, the second 1, ... */
  uint32_t sample_index;
  /** So many most likely tokens. */
  uint32_t top;
  /** The log-probabilities of these tokens. */
  tartlet_list_token given;
  /** The entropy of the distribution. */
  bool entropy;
  /** All logits, as the model gives them. */
  bool logits;
} tartlet_request;
void tartlet_request_free(tartlet_request *value);

typedef struct { bool is_some; tartlet_list_u32 value; } tartlet_option_list_u32;
void tartlet_option_list_u32_free(tartlet_option_list_u32 *value);

typedef struct { tartlet_request *data; size_t length; } tartlet_list_request;
void tartlet_list_request_free(tartlet_list_request *value);

/** A pass. */
typedef struct {
  /** The row that each token follows, which comes before it: 0 for the context's last token. A token sees the context
   * and the tokens that it follows, directly and indirectly, and no other branch. Without it, each token follows the
   * one before. A tree has at most 256 tokens; a line as many as the context has room for. */
  tartlet_option_list_u32 parents;
  /** Where each token stands: after the one that it follows, but not necessarily right after, so that positions can be
   * left out. Without it, right after. `unsupported` if the model's features do not have `evict`. */
  tartlet_option_list_u32 positions;
  /** Report the log-probability of each token after what it follows. */
  bool log_probabilities;
  /** At most 512, which together ask for at most 16,384 most likely and given tokens, 64 samples and 8 rows of logits. */
  tartlet_list_request requests;
} tartlet_forward_options;
void tartlet_forward_options_free(tartlet_forward_options *value);

typedef struct { bool is_some; tartlet_generation_token_log_probability value;
    } tartlet_option_generation_token_log_probability;

typedef struct { float *data; size_t length; } tartlet_list_f32;
void tartlet_list_f32_free(tartlet_list_f32 *value);

typedef struct { bool is_some; float value; } tartlet_option_f32;

/** The answer to one request. Log-probabilities and entropy are in nats, and those of the model's own distribution. */
typedef struct {
  /** The token sampled; its log-probability is after penalties and bias, before temperature. */
  tartlet_option_generation_token_log_probability sampled;
  /** The most likely tokens, most likely first. */
  tartlet_list_generation_token_log_probability top;
  /** One for each token given. */
  tartlet_list_f32 given;
  tartlet_option_f32 entropy;
  /** Two logits in each item, as the bits of f32, the first in the lower half; a last odd one beside a zero. */
  tartlet_list_u64 logits;
} tartlet_row;
void tartlet_row_free(tartlet_row *value);

typedef struct { tartlet_row *data; size_t length; } tartlet_list_row;
void tartlet_list_row_free(tartlet_list_row *value);

/** What a pass has found. */
typedef struct {
  /** One for each token, if asked for. */
  tartlet_list_f32 log_probabilities;
  /** One for each request, in their order. */
  tartlet_list_row rows;
} tartlet_findings;
void tartlet_findings_free(tartlet_findings *value);

/** One pass. The context is busy until the pass is committed, discarded or dropped: meanwhile it can be read and
 * forked, and forks have none of the pass's tokens. Dropping a pass discards it. */
typedef struct { int32_t handle; } tartlet_pass;
void tartlet_pass_drop(tartlet_pass pass);

/** The event that becomes ready when it is computed, or cannot be. The same at every call; it goes away with the pass. */
tartlet_event tartlet_pass_ready(tartlet_pass self);

/** What it has found, once. */
tartlet_findings tartlet_pass_read(tartlet_pass self, tartlet_failure *failure);

/** Appends the tokens of some rows to the context: the first follows the context's last token, each other the one
 * before it. What of them is computed is not computed again; the rest of the pass is forgotten. */
void tartlet_pass_commit(tartlet_pass self, tartlet_list_u32 path, tartlet_failure *failure);

/** Forgets the pass. No effect if it is committed. */
void tartlet_pass_discard(tartlet_pass self);

/** Computes tokens at the end of the context, which must not be empty. As before a generation, the assistant's turn is
 * begun first if the last thing filled was a chat message of another role; that stays. Tokens count as a prompt's. A run
 * may have 64 passes at a time, which count until they are dropped. */
tartlet_pass tartlet_forward_forward(tartlet_context context, tartlet_list_token tokens,
    const tartlet_forward_options *options, tartlet_failure *failure);

/* ---- steering ----------------------------------------------------------------
 * What a controller hears and answers: the types of the world `controller`.
 *
 * A controller steers one generation. It hears what really happened in the last step while the model computes the next one,
 * and says what that is to append. A generation begins as one sequence, number 0; forks add more, and all of them are in one call.
 */

typedef struct { bool is_some; tartlet_list_token value; } tartlet_option_list_token;
void tartlet_option_list_token_free(tartlet_option_list_token *value);

/** What `start` answers. */
typedef struct {
  /** Replaces the tokens of the context, if given. */
  tartlet_option_list_token prompt;
  /** Report the log-probability of each sampled token and of this many most likely ones (at most 20). */
  tartlet_option_u32 log_probabilities;
} tartlet_start_answer;
void tartlet_start_answer_free(tartlet_start_answer *value);

/** The log-probability of a token. */
typedef struct {
  tartlet_token token;
  /** Natural logarithm, before temperature, and after penalties, bias and mask. */
  float log_probability;
} tartlet_steering_token_log_probability;

typedef struct { tartlet_steering_token_log_probability *data; size_t length;
    } tartlet_list_steering_token_log_probability;
void tartlet_list_steering_token_log_probability_free(tartlet_list_steering_token_log_probability *value);

/** Log-probabilities where a token was sampled. */
typedef struct {
  tartlet_steering_token_log_probability chosen;
  /** The most likely tokens, most likely first. */
  tartlet_list_steering_token_log_probability top;
} tartlet_sampled_log_probabilities;
void tartlet_sampled_log_probabilities_free(tartlet_sampled_log_probabilities *value);

typedef struct { bool is_some; tartlet_token value; } tartlet_option_token;

typedef struct { bool is_some; tartlet_sampled_log_probabilities value; } tartlet_option_sampled_log_probabilities;
void tartlet_option_sampled_log_probabilities_free(tartlet_option_sampled_log_probabilities *value);

typedef struct { bool is_some; tartlet_error value; } tartlet_option_error;
void tartlet_option_error_free(tartlet_option_error *value);

/** What happened to a sequence since it was last decided on. At the first call for a sequence, and after a wait, that is nothing. */
typedef struct {
  /** Its number. */
  uint32_t sequence;
  /** Tokens that were dropped from its end, of those that were there. */
  uint32_t backtrack;
  /** Then appended. */
  tartlet_list_token tokens;
  /** What was sampled, even if a splice has replaced it. */
  tartlet_option_token sampled;
  /** At the first call after a fork: the numbers of all that came of it, in the order of its branches. The first is that of the
   * sequence which forked. */
  tartlet_list_u32 siblings;
  /** Where it sampled, if `start` asked for them. */
  tartlet_option_sampled_log_probabilities log_probabilities;
  /** The last decision could not be carried out, and has changed nothing. 16 of these in a row end the generation. */
  tartlet_option_error refused;
  /** The sequence has ended: the name of a `generation.finish-reason`. The decision on it is ignored. One
   * that the controller has stopped is not told. */
  tartlet_option_string finish_reason;
} tartlet_steering_outcome;
void tartlet_steering_outcome_free(tartlet_steering_outcome *value);

/** A change of what a step appends: some tokens are dropped, then others appended, which nobody samples. */
typedef struct {
  /** It holds if one of these is sampled; empty: whatever is. */
  tartlet_list_token when_sampled;
  /** Tokens to drop. If the step samples, this counts the sampled token, too: 1 drops only that, 0 keeps it. */
  uint32_t backtrack;
  tartlet_list_token tokens;
} tartlet_steering_splice;
void tartlet_steering_splice_free(tartlet_steering_splice *value);

typedef struct { tartlet_steering_splice *data; size_t length; } tartlet_list_steering_splice;
void tartlet_list_steering_splice_free(tartlet_list_steering_splice *value);

/** What a sequence does in its next step. */
typedef struct {
  /** Sample a token. Without, the step only appends and drops what its one splice says. */
  bool sample;
  /** Only these tokens can be sampled; nothing: all. */
  tartlet_option_list_token allow;
  /** Only tokens of this mask, too, by its `id`. */
  tartlet_option_u32 mask;
  /** Added to the logits of single tokens, besides the generation's own. */
  tartlet_list_tuple_token_f32 bias;
  /** Instead of the generation's own. */
  tartlet_option_f32 temperature;
  /** If it samples, the first whose condition holds counts; otherwise there is at most one, without a condition. */
  tartlet_list_steering_splice splices;
} tartlet_branch;
void tartlet_branch_free(tartlet_branch *value);

typedef struct { tartlet_branch *data; size_t length; } tartlet_list_branch;
void tartlet_list_branch_free(tartlet_list_branch *value);

/** What a sequence does next. */
typedef enum : uint8_t {
  /** Goes on: samples as the generation says. */
  TARTLET_DECISION_GO_ON,
  /** Ends (no branch), goes on (one), or forks (more). The first branch is the sequence itself; each further one is a new sequence,
   * which gets the next number, in the order of decisions and branches. Numbers are used up even if the fork is refused. */
  TARTLET_DECISION_BRANCHES,
  /** Gives up its place in the batch until one of these events is ready. They stay the controller's, to be freed. */
  TARTLET_DECISION_WAIT,
} tartlet_decision_case;

typedef struct {
  tartlet_decision_case which;
  union {
    tartlet_list_branch branches;
    tartlet_list_event wait;
  };
} tartlet_decision;
void tartlet_decision_free(tartlet_decision *value);

/* ---- stepping ----------------------------------------------------------------
 * Generating token by token, with the program in control.
 *
 * A program answers before each token: what may be sampled, what is taken back, what is written instead. The forward pass
 * of a token runs while the program works on its next answer, so one that thinks for less than that loses nothing. One
 * that takes longer delays nobody else: its context waits outside of the batch.
 */

/** A change of what a step appends. */
typedef struct {
  /** Holds if one of these is sampled; empty: always. Must be empty in a step that samples nothing. At most 1,024. */
  tartlet_list_token when_sampled;
  /** Drop so many tokens from the end. In a step that samples, this counts the sampled token, too: 0 keeps it, 1
   * replaces it, 2 also drops the one before it. What was there before the first step can be dropped as well. */
  uint32_t backtrack;
  /** Then append these. They are computed together, before anything else is sampled. */
  tartlet_list_token tokens;
} tartlet_stepping_splice;
void tartlet_stepping_splice_free(tartlet_stepping_splice *value);

typedef struct { uint32_t f0; float f1; } tartlet_tuple_u32_f32;

typedef struct { tartlet_tuple_u32_f32 *data; size_t length; } tartlet_list_tuple_u32_f32;
void tartlet_list_tuple_u32_f32_free(tartlet_list_tuple_u32_f32 *value);

typedef struct { tartlet_stepping_splice *data; size_t length; } tartlet_list_stepping_splice;
void tartlet_list_stepping_splice_free(tartlet_list_stepping_splice *value);

/** What a program wants of one step. Nothing of it lasts beyond that step, or concerns another context. */
typedef struct {
  /** Sample a token. A step that does not only carries out its splice, if it has one. */
  bool sample;
  /** Only these tokens can be sampled. A list that is there must not be empty. */
  tartlet_option_list_token allow;
  /** Only tokens in this mask of the run, by its `id`. All restrictions hold together, those of the sampling and of the
   * constraint, too; where they leave nothing, the answer is refused. */
  tartlet_option_u32 mask;
  /** Added to the logits of single tokens, besides the sampling's own; at most 1,024. */
  tartlet_list_tuple_token_f32 bias;
  /** Added to the logits of all tokens of a mask of the run, by its `id`; at most 4. */
  tartlet_list_tuple_u32_f32 boosts;
  /** The temperature of this step. */
  tartlet_option_f32 temperature;
  /** The first whose condition holds counts; at most 64, or one if nothing is sampled. */
  tartlet_list_stepping_splice splices;
} tartlet_answer;
void tartlet_answer_free(tartlet_answer *value);

typedef struct { bool is_some; tartlet_position_log_probabilities value; } tartlet_option_position_log_probabilities;
void tartlet_option_position_log_probabilities_free(tartlet_option_position_log_probabilities *value);

/** What a step has really done. */
typedef struct {
  /** Tokens dropped, of those that were there before the step. */
  uint32_t backtrack;
  /** Tokens appended after that. */
  tartlet_list_token tokens;
  /** The token that was sampled, even if a splice has replaced it. */
  tartlet_option_token sampled;
  /** Characters (Unicode scalar values) to drop from the end of the text so far, before `text` is added. */
  uint32_t text_backtrack;
  /** Whole characters only; may lag behind the tokens. */
  tartlet_string text;
  /** At the sampled token, if asked for. */
  tartlet_option_position_log_probabilities log_probabilities;
  /** Set if this was the last step: a stop condition holds for what was appended. */
  tartlet_option_finish finish;
} tartlet_stepping_outcome;
void tartlet_stepping_outcome_free(tartlet_stepping_outcome *value);

/** What else is wanted. */
typedef struct {
  /** Report the log-probability of each sampled token, and of this many most likely ones (at most 20). */
  tartlet_option_u32 log_probabilities;
  /** What is sampled follows this constraint of the run, by its `id`, from here on: it goes back and on with the text.
   * A backtrack beyond its beginning is refused. What it does not allow can be spliced in, but nothing can be
   * sampled then until it is taken back. */
  tartlet_option_u32 constraint;
  /** All that is sampled is in this mask of the run, by its `id`. */
  tartlet_option_u32 mask;
} tartlet_stepping_options;

/** A stepped generation. Its context is busy as long as it lasts, but can be read, and forked between two steps.
 * Dropping it ends it. The run's limit `max_step_ms` ends it, with the error `deadline-exceeded`, if the program does
 * not answer for so long after an outcome. */
typedef struct { int32_t handle; } tartlet_steps;
void tartlet_steps_drop(tartlet_steps steps);

/** Answers, waits for the outcome, and reads it. The whole program waits. A refused answer is an error and changes
 * nothing; another one may follow. */
tartlet_stepping_outcome tartlet_steps_next(tartlet_steps self, const tartlet_answer *answer, tartlet_failure *failure);

/** Only answers: the outcome comes with `ready` and `outcome`, so that a program can have many going on. */
void tartlet_steps_answer(tartlet_steps self, const tartlet_answer *answer, tartlet_failure *failure);

/** The event that becomes ready with each outcome, refusal or end. The same at every call; it goes away with the
 * steps. */
tartlet_event tartlet_steps_ready(tartlet_steps self);

/** What the step that was answered last has done, once. Before that, an error: `unavailable`. */
tartlet_stepping_outcome tartlet_steps_outcome(tartlet_steps self, tartlet_failure *failure);

typedef struct { tartlet_context f0; tartlet_steps f1; } tartlet_tuple_context_steps;

/** Forks the context and the steps between two steps: the child has the same tokens, penalties, constraint and stop
 * conditions, and shares the logits, so that it can sample at once, as its own answer says. Without a seed, the run
 * draws it. */
tartlet_tuple_context_steps tartlet_steps_fork(tartlet_steps self, tartlet_option_u64 seed, tartlet_failure *failure);

/** Says that the program waits for something else now: until its next answer, its time is not counted. */
void tartlet_steps_hold(tartlet_steps self);

/** Ends it. What is kept for it is given back; the tokens stay in the context. No effect if it has ended. */
void tartlet_steps_stop(tartlet_steps self);

/** Starts at the end of the context. Nothing is computed or sampled that no answer asks for, but what is in the context. */
tartlet_steps tartlet_stepping_start(tartlet_context context, const tartlet_sampling *sampling,
    const tartlet_stop_conditions *stop, const tartlet_stepping_options *options, tartlet_failure *failure);

/* ---- store -------------------------------------------------------------------
 * What a run keeps by name: its variables, which all that belongs to the run can read, write and wait for. They are gone
 * with the run. Every write is told to the client that launched it.
 *
 * Values are text. How many variables there may be, and how large all names and values together, is limited: what would
 * exceed that is refused with `quota-exceeded`. Each write counts towards the run's output limit with the name and the whole
 * value. A name has 1 to 256 bytes.
 */

/** A variable as it is now. */
typedef struct {
  /** How many times it has been written: 1 after the first time. */
  uint64_t version;
  tartlet_string value;
} tartlet_variable;
void tartlet_variable_free(tartlet_variable *value);

/** What became of a compare-and-swap. */
typedef struct {
  /** Whether the value was written. */
  bool written;
  /** If it was, the new version and value; if not, those that were found. Version 0 is a variable that does not exist. */
  tartlet_variable now;
} tartlet_swap;
void tartlet_swap_free(tartlet_swap *value);

/** A variable's name and version. */
typedef struct {
  tartlet_string name;
  uint64_t version;
} tartlet_variable_version;
void tartlet_variable_version_free(tartlet_variable_version *value);

typedef struct { bool is_some; tartlet_variable value; } tartlet_option_variable;
void tartlet_option_variable_free(tartlet_option_variable *value);

/** The variable of that name, if there is one. */
tartlet_option_variable tartlet_store_get_variable(tartlet_string name);

/** Writes a variable, which need not exist. The new version. */
uint64_t tartlet_store_set_variable(tartlet_string name, tartlet_string value, tartlet_failure *failure);

/** Adds to the end of a variable; one that does not exist is empty. The new version. */
uint64_t tartlet_store_append_variable(tartlet_string name, tartlet_string value, tartlet_failure *failure);

/** Writes a variable if it still has that version; 0 if it does not exist yet. */
tartlet_swap tartlet_store_compare_and_swap_variable(tartlet_string name, tartlet_string value, uint64_t version,
    tartlet_failure *failure);

typedef struct { tartlet_variable_version *data; size_t length; } tartlet_list_variable_version;
void tartlet_list_variable_version_free(tartlet_list_variable_version *value);

/** All variables, in the order in which they were first written. */
tartlet_list_variable_version tartlet_store_list_variables(void);

/** An event that becomes ready as soon as the variable's version is above `version`, which it may be already. The
 * variable need not exist: above 0 waits for its first write. */
tartlet_event tartlet_store_variable_above(tartlet_string name, uint64_t version, tartlet_failure *failure);

/* ---- What the program defines -------------------------------------------------- */

typedef struct {
  bool is_error;
  union {
    tartlet_string ok;
    tartlet_string error;
  };
} tartlet_result_string_string;
void tartlet_result_string_string_free(tartlet_result_string_string *value);

typedef struct {
  bool is_error;
  union {
    tartlet_start_answer ok;
    tartlet_string error;
  };
} tartlet_result_start_answer_string;
void tartlet_result_start_answer_string_free(tartlet_result_start_answer_string *value);

typedef struct { tartlet_steering_outcome *data; size_t length; } tartlet_list_steering_outcome;
void tartlet_list_steering_outcome_free(tartlet_list_steering_outcome *value);

typedef struct { tartlet_decision *data; size_t length; } tartlet_list_decision;
void tartlet_list_decision_free(tartlet_list_decision *value);

typedef struct {
  bool is_error;
  union {
    tartlet_list_decision ok;
    tartlet_string error;
  };
} tartlet_result_list_decision_string;
void tartlet_result_list_decision_string_free(tartlet_result_list_decision_string *value);

#ifndef TARTLET_CONTROLLER
/* The program defines these: world inferlet. */

/** The program: JSON in, JSON out. The error is text for people, such as a traceback. */
tartlet_result_string_string run(tartlet_string input);

#endif

#ifdef TARTLET_CONTROLLER
/* The program defines these: world controller. */

/** Begins: `config` is whoever starts the generation's, JSON as a rule; `prompt` are the context's tokens. The error is text for
 * people, and ends the generation. */
tartlet_result_start_answer_string start(tartlet_string config, tartlet_list_token prompt);

/** Decides on every sequence that has news: one decision for each outcome, in their order. Called once a step of the engine; an answer
 * that comes late delays nobody but this generation. The error is text for people, and ends the generation. */
tartlet_result_list_decision_string step(tartlet_list_steering_outcome outcomes);

#endif

#endif
