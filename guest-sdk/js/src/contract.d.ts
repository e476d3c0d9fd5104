// Made by make_types.py of the contract in wit/: do not change it by hand.
// A function whose result may be an error throws an object whose `payload` is that error.

/**
 * What a generation may write: JSON of a schema, texts that match, one of several; and sets of tokens.
 *
 * A constraint is compiled on the host, and masks out every token that it does not allow; tokens that it leaves no choice
 * about are appended without being sampled. Masks and grammars stay on the host. A constraint begins with a generation:
 * it says nothing about what is in the context already. A model whose features do not have `constraints` has none, and
 * no matchers; masks it has.
 */
declare module "tartlet:inferlet/constraints@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Model } from "tartlet:inferlet/models@0.1.0";
  /**
   * One constraint, which any number of generations can follow, one after the other or at once. Compiling goes on after
   * the call: the text is checked then. Dropping it does not concern generations that have started with it.
   *
   * The same constraint is compiled once for a tenant. What it may take is bounded, in time, memory and size of the text:
   * beyond that, its error is `quota-exceeded`.
   */
  export class Constraint {
    private constructor();
    [Symbol.dispose](): void;
    /**
     * A JSON text that a JSON schema describes. It is written on one line, with a space after each comma and colon.
     * Keywords that cannot be followed are an error.
     */
    static jsonSchema(model: Model, schema: string): Constraint;
    /** A text that matches a regular expression as a whole, in the syntax of Rust's regex. */
    static regex(model: Model, pattern: string): Constraint;
    /** A text of a context-free grammar in llguidance's variant of Lark; it begins with the rule `start`. */
    static lark(model: Model, grammar: string): Constraint;
    /** One of several texts. */
    static choices(model: Model, texts: string[]): Constraint;
    /** A run of whole words out of a text, as they stand there: a quotation. */
    static substring(model: Model, text: string): Constraint;
    /** Any number of tokens out of a set. */
    static tokens(model: Model, allowed: Token[]): Constraint;
    /** Any number of tokens out of a mask, which must not be empty. */
    static ofMask(mask: Mask): Constraint;
    /**
     * What all of some compiled constraints of the run allow, by their ids. A token is allowed where each of them allows
     * it, so it can come to a place where nothing is: that is an error of the generation. Put regular expressions into
     * one lark terminal with `&` where that matters. At most 8 can be put together, parts of parts included.
     */
    static allOf(parts: number[]): Constraint;
    /**
     * What any of some compiled constraints of the run allows, by their ids: at each place what those allow that have
     * allowed everything before it.
     */
    static anyOf(parts: number[]): Constraint;
    /**
     * The event that becomes ready when it is compiled, or cannot be: its outcome says why. The same at every call; it
     * goes away with its outcome, or with the constraint.
     */
    ready(): Event;
    /** The number that `generation.options` takes. */
    id(): number;
  }
  /**
   * A set of tokens, eos tokens like any other. It stays on the host, so it costs nothing to attach it to a generation, and
   * a microsecond or so to put it together with others. A run may hold 1,024 of them.
   */
  export class Mask {
    private constructor();
    [Symbol.dispose](): void;
    /** These tokens. */
    static tokens(model: Model, tokens: Token[]): Mask;
    /**
     * The tokens whose bits are set: bit `t % 64` of word `t / 64` is that of token t. There must be as many words as the
     * vocabulary needs, and no bits beyond it.
     */
    static words(model: Model, words: number[]): Mask;
    /** All tokens of the vocabulary. */
    static all(model: Model): Mask;
    /** The tokens that this and all of these masks have, by their ids; at most 64 of them, here and below. */
    intersection(others: number[]): Mask;
    /** The tokens that this or any of these masks has. */
    union(others: number[]): Mask;
    /** The tokens that this one does not have. */
    complement(): Mask;
    /** Those of these tokens that this one has. */
    restrict(tokens: Token[]): Mask;
    /** How many tokens it has. */
    count(): number;
    /** Whether it has a token. */
    allows(token: Token): boolean;
    /** The number that `generation.options` and functions of other masks take. */
    id(): number;
  }
  /** Where a matcher is. */
  export interface Place {
    /**
     * Tokens that come next, whatever is sampled: the text that the constraint leaves no choice about, as the model
     * writes it. The matcher has not gone through them.
     */
    forced: Token[];
    /** What it has gone through is a whole text of the constraint: it may end here. */
    mayEnd: boolean;
    /** And nothing may follow. */
    isComplete: boolean;
    /** Why nothing is allowed here, for instance because of a token that was not; going back over it brings it back. */
    problem: string | null;
  }
  /**
   * A way through a constraint that the program goes by itself, for its own sampling, scoring or splicing. Its work is
   * done beside the model's, and charged to the tenant: after each move wait for `ready`. What it says before that is
   * the error `unavailable`. It goes through at most as many tokens as the model's context has.
   */
  export class Matcher {
    private constructor();
    [Symbol.dispose](): void;
    /** Begins at the beginning of a compiled constraint. */
    static begin(constraint: Constraint): Matcher;
    /**
     * The event that becomes ready whenever it has arrived, with an error if it cannot: `quota-exceeded` if the tenant
     * follows too many constraints. The same at every call; it goes away with the matcher.
     */
    ready(): Event;
    /** Where it is. */
    place(): Place;
    /**
     * The tokens that may come next, eos tokens where it may end. Of a text that is forced, the one token with which the
     * model writes it.
     */
    mask(): Mask;
    /** Goes on by tokens, allowed or not. */
    advance(tokens: Token[]): void;
    /** Goes back over so many tokens. */
    rollback(count: number): void;
    /** Makes another matcher at the same place, which goes its own way. */
    fork(): Matcher;
  }
}

/** Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache. */
declare module "tartlet:inferlet/contexts@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Model } from "tartlet:inferlet/models@0.1.0";
  /** Whose words a chat message is. */
  export type Role = "system" | "user" | "assistant" | "tool";
  /** How a context is saved. */
  export interface SaveOptions {
    /** Nanoseconds for which it is kept; without it, until it is deleted. */
    ttlNs: number | null;
    /** Take the place of what is saved under the name; otherwise that is an error, `already-exists`. */
    overwrite: boolean;
  }
  /** What there is to know of a saved context. */
  export interface SavedContext {
    /** The name it is opened by. */
    name: string;
    /** The model that it was saved with, and can be opened with. */
    model: string;
    /** The adapter that it was made with, which the model must still have. */
    adapter: string | null;
    /** Number of tokens. */
    tokens: number;
    /** What it takes of the tenant's quota. */
    bytes: number;
    /** Nanoseconds for which it is still kept; nothing: until it is deleted. */
    expiresInNs: number | null;
  }
  /**
   * One sequence of tokens. Operations on a context happen in the order in which they are asked for. Filling only
   * appends tokens: they are computed when a generation, a fork or a flush needs them.
   *
   * While a generation runs on it, or a forward pass on it is neither committed nor discarded, a context is busy: it can be
   * read and forked (a fork starts after the last token generated so far, and has none of a pass), everything else is an
   * error, `unavailable`.
   */
  export class Context {
    private constructor();
    [Symbol.dispose](): void;
    /**
     * An empty context. With the name of one of the model's LoRA adapters, its tokens are computed as if the adapter
     * were merged into the model, and so are those of its forks; an unknown name is an error, `not-found`. Contexts
     * with different adapters share no pages.
     */
    static create(model: Model, adapter: string | null): Context;
    /** Appends a text as it is. Special tokens written out in it become their ids. */
    fill(text: string): void;
    /** Appends token ids. */
    fillTokens(tokens: Token[]): void;
    /**
     * Appends a chat message in the form that the model's chat template gives it, after closing an assistant's turn
     * that a generation left open. Special tokens in the text stay text.
     */
    fillMessage(role: Role, text: string): void;
    /**
     * Begins the assistant's turn, as the chat template writes it. A generation does so by itself if the last thing
     * filled was a chat message of another role.
     */
    cue(): void;
    /** Computes what has been filled. The event becomes ready when it is done; its outcome says whether it could be. */
    flush(): Event;
    /**
     * A context with the same tokens, which shares the pages: no page is copied and nothing is computed twice. What the
     * two append afterwards does not concern the other.
     */
    fork(): Context;
    /** Number of tokens. */
    length(): number;
    /**
     * Number of positions that are taken: those of its tokens, and those of tokens that were evicted before them. The
     * model's context length less this is how many tokens can be added.
     */
    positions(): number;
    /** All tokens, in order. */
    tokens(): Token[];
    /** Drops the tokens after the first `length`. */
    truncate(length: number): void;
    /**
     * Drops the tokens from `start` to before `end` out of the middle, once what has been filled is computed; the last
     * token must stay. Tokens that come later do not see them: it is as if they were masked. What is kept stays as it was
     * computed, at its positions, and positions go on after the last token: what was evicted still counts for the context
     * length. Truncating to before the gap takes it back.
     *
     * The event becomes ready when that is done; its outcome says whether it could be. `length` and `tokens` change then,
     * and other calls on the context wait for it. `unsupported` if the model's features do not have `evict`.
     */
    evict(start: number, end: number): Event;
    /**
     * Saves the context under a name that belongs to the tenant, with its keys and values, after computing what has been
     * filled. The event becomes ready when that is done; its outcome says whether it could be: `already-exists`,
     * `quota-exceeded`. What is done to the context meanwhile does not concern what is saved. A save outlives its run
     * once the event is ready; a run that ends before may have saved it whole or not at all.
     *
     * A name has 1 to 128 letters (a-z, A-Z), digits and the characters `. _ : / -`, and begins with a letter or a digit.
     */
    save(name: string, options: SaveOptions): Event;
    /**
     * Opens a saved context: the same tokens, keys, values and state of the chat, read and not computed. Each opening
     * gives a context of its own. Errors come when it is taken: `not-found`, also for a file that is damaged, and
     * `unsupported` if it was saved with another model, or with an adapter that is not there or is another one now.
     */
    static open(model: Model, name: string): Opening;
  }
  /** A saved context on its way. Dropping it before the context is taken gives it up. */
  export class Opening {
    private constructor();
    [Symbol.dispose](): void;
    /** The event that becomes ready when the context can be taken. The same at every call; it goes away with the opening. */
    ready(): Event;
    /** The context, once; or why it cannot be opened. `unavailable` before the event is ready. */
    take(): Context;
  }
  /** The saved contexts of the tenant, by name, those of other models too. */
  export function listSaved(): SavedContext[];
  /** Deletes a saved context of the tenant. Contexts that were opened from it are not concerned. */
  export function deleteSaved(name: string): void;
}

/** Generations that another program, a controller, steers token by token (world `controller`). */
declare module "tartlet:inferlet/controllers@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Context } from "tartlet:inferlet/contexts@0.1.0";
  import type { Sampling, StopConditions, Options, PositionLogProbabilities, Finish } from "tartlet:inferlet/generation@0.1.0";
  /** What one sequence of the generation has produced since it was last read. */
  export interface SequenceChunk {
    /**
     * Its number: 0 is the context's own; others are forks by the controller. The first chunk of a fork begins with all that was
     * generated before it forked.
     */
    sequence: number;
    /** Characters (Unicode scalar values) at the end of the text read so far that were taken back. */
    textBacktrack: number;
    /** Then added. Whole characters only, without eos tokens. */
    text: string;
    /** Tokens at the end of those read so far that were taken back. */
    tokenBacktrack: number;
    /** Then added: sampled or forced. */
    tokens: Token[];
    /** One for each token that was sampled, kept or not, if asked for. */
    logProbabilities: PositionLogProbabilities[];
    /** Set in the last chunk of the sequence. */
    finish: Finish | null;
  }
  /** What the generation has produced since it was last read. */
  export interface ControlledChunks {
    /** At most one of each sequence, in the order of their numbers. */
    chunks: SequenceChunk[];
    /** All sequences have ended, and nothing more comes. */
    ended: boolean;
  }
  /**
   * One generation. Dropping it cancels it. What its sequence 0 generates is appended to the context; what forks generate is only
   * in their chunks.
   */
  export class Controlled {
    private constructor();
    [Symbol.dispose](): void;
    /**
     * The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end of all sequences. The
     * same at every call; it goes away with the generation.
     */
    ready(): Event;
    /**
     * What has come since the last read, which may be nothing. After the last chunks, an error.
     * If the controller fails, is late for good, or cannot be started, the error says so, `program-failed` or
     * `deadline-exceeded`, with what the controller has logged last.
     */
    read(): ControlledChunks;
    /** Ends all sequences at the next step, with what they have. No effect if it has ended. */
    cancel(): void;
  }
  /**
   * Starts a generation at the end of the context. The controller is a program that the host knows by this name; `config` is for its
   * `start`, which may replace the context's tokens. How many controllers a run may have at once is limited.
   */
  export function control(context: Context, controller: string, config: string, sampling: Sampling, stop: StopConditions, options: Options): Controlled;
}

/**
 * Waiting. Calls that take time give an event at once; `poll` waits for any of several. Each SDK turns this into its
 * language's own async.
 *
 * An event is level-triggered: once ready it stays ready, until it is dropped or (a generation's event) until what it
 * announced has been read. An id that the run does not hold ends the run with `invalid_handle`.
 */
declare module "tartlet:inferlet/events@0.1.0" {
  import type { Event, Error } from "tartlet:inferlet/types@0.1.0";
  /**
   * Waits until at least one of `events` is ready, or `timeout-ns` has passed, and returns the ready ones, in the order
   * given; an empty list means that the time has passed. A timeout of 0 only looks. Waiting for no event without a
   * timeout would be for ever, and ends the run with `deadlock`. Waiting without a timeout for nothing but what only the
   * run itself can bring about, such as changes of its variables, would be for ever, too: these events become ready at
   * once, and their outcome is the error `deadlock`.
   */
  export function poll(events: Event[], timeoutNs: number | null): Event[];
  /** An event that becomes ready after `delay-ns` nanoseconds. */
  export function timer(delayNs: number): Event;
  /**
   * What became of the operation behind a ready event (a timer's is always ok). Frees the event. An event that is not
   * ready yet is an error, `unavailable`, and stays.
   */
  export function outcome(event: Event): void;
  /** Frees the event. The operation behind it, if there is one, goes on. */
  export function dropEvent(event: Event): void;
}

/**
 * Forward passes: tokens after a context's last one are computed provisionally, the program looks at what the model says
 * of them, and keeps a part or nothing.
 *
 * Rows are numbered: row 0 is the context's last token, row `n` the n-th token of the pass. What is asked of a row is
 * about what comes after that token.
 */
declare module "tartlet:inferlet/forward@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Context } from "tartlet:inferlet/contexts@0.1.0";
  import type { Sampling, TokenLogProbability } from "tartlet:inferlet/generation@0.1.0";
  /** What is wanted of one row. */
  export interface Request {
    row: number;
    /** Sample a token. It is not appended to anything; it counts as a generated token of the run. */
    sampling: Sampling | null;
    /** Which number of the seed's stream to sample by: the first token of a generation has 0, the second 1, ... */
    sampleIndex: number;
    /** So many most likely tokens. */
    top: number;
    /** The log-probabilities of these tokens. */
    given: Token[];
    /** The entropy of the distribution. */
    entropy: boolean;
    /** All logits, as the model gives them. */
    logits: boolean;
  }
  /** A pass. */
  export interface Options {
    /**
     * The row that each token follows, which comes before it: 0 for the context's last token. A token sees the context
     * and the tokens that it follows, directly and indirectly, and no other branch. Without it, each token follows the
     * one before. A tree has at most 256 tokens; a line as many as the context has room for.
     */
    parents: number[] | null;
    /**
     * Where each token stands: after the one that it follows, but not necessarily right after, so that positions can be
     * left out. Without it, right after. `unsupported` if the model's features do not have `evict`.
     */
    positions: number[] | null;
    /** Report the log-probability of each token after what it follows. */
    logProbabilities: boolean;
    /** At most 512, which together ask for at most 16,384 most likely and given tokens, 64 samples and 8 rows of logits. */
    requests: Request[];
  }
  /** The answer to one request. Log-probabilities and entropy are in nats, and those of the model's own distribution. */
  export interface Row {
    /** The token sampled; its log-probability is after penalties and bias, before temperature. */
    sampled: TokenLogProbability | null;
    /** The most likely tokens, most likely first. */
    top: TokenLogProbability[];
    /** One for each token given. */
    given: number[];
    entropy: number | null;
    /** Two logits in each item, as the bits of f32, the first in the lower half; a last odd one beside a zero. */
    logits: number[];
  }
  /** What a pass has found. */
  export interface Findings {
    /** One for each token, if asked for. */
    logProbabilities: number[];
    /** One for each request, in their order. */
    rows: Row[];
  }
  /**
   * One pass. The context is busy until the pass is committed, discarded or dropped: meanwhile it can be read and
   * forked, and forks have none of the pass's tokens. Dropping a pass discards it.
   */
  export class Pass {
    private constructor();
    [Symbol.dispose](): void;
    /** The event that becomes ready when it is computed, or cannot be. The same at every call; it goes away with the pass. */
    ready(): Event;
    /** What it has found, once. */
    read(): Findings;
    /**
     * Appends the tokens of some rows to the context: the first follows the context's last token, each other the one
     * before it. What of them is computed is not computed again; the rest of the pass is forgotten.
     */
    commit(path: number[]): void;
    /** Forgets the pass. No effect if it is committed. */
    discard(): void;
  }
  /**
   * Computes tokens at the end of the context, which must not be empty. As before a generation, the assistant's turn is
   * begun first if the last thing filled was a chat message of another role; that stays. Tokens count as a prompt's. A run
   * may have 64 passes at a time, which count until they are dropped.
   */
  export function forward(context: Context, tokens: Token[], options: Options): Pass;
}

/** Generating text from a context. */
declare module "tartlet:inferlet/generation@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Context } from "tartlet:inferlet/contexts@0.1.0";
  /**
   * How the next token is chosen. The steps apply in this order: penalties and bias, constraint, temperature, top-k,
   * top-p, min-p.
   */
  export interface Sampling {
    /** 0 takes the most likely token (greedy), whatever the other fields say. */
    temperature: number;
    /** Only the k most likely tokens; 0 for all. */
    topK: number;
    /** Only the most likely tokens that together have this probability; 1 for all. */
    topP: number;
    /** Only tokens at least this fraction as likely as the most likely one; 0 for all. */
    minP: number;
    /** Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none. */
    repetitionPenalty: number;
    /** Subtracted from the logits of tokens generated so far; 0 for none. */
    presencePenalty: number;
    /** Subtracted once for each time that a token was generated so far; 0 for none. */
    frequencyPenalty: number;
    /** Added to the logits of single tokens. */
    logitBias: [Token, number][];
    /** The same seed gives the same tokens, whatever else runs. Without one, the run draws it. */
    seed: number | null;
  }
  /** When to stop. Whatever happens first counts; the context length always does. */
  export interface StopConditions {
    /** At most this many tokens; without it, up to the context length. */
    maxTokens: number | null;
    /** Stop after any of these tokens. */
    tokens: Token[];
    /** Stop when the text contains any of these, even when it spans several tokens. */
    strings: string[];
    /** Go on after the model's own eos tokens. */
    ignoreEos: boolean;
  }
  /** What else is wanted. */
  export interface Options {
    /** Announce what comes through the event; otherwise the event becomes ready once, at the end. */
    streaming: boolean;
    /**
     * If streaming: nanoseconds from a read to the next announcement, at least, but for the end. What comes meanwhile
     * joins the next chunk. 0 announces every token; the fewer chunks, the less of the processor a program takes from
     * the model.
     */
    chunkIntervalNs: number;
    /** Report the log-probability of each chosen token and of this many most likely ones (at most 20). */
    logProbabilities: number | null;
    /**
     * Generate only what this constraint of the run allows, by its `id`. It must be compiled. The model's eos tokens are
     * allowed where the constraint may end.
     */
    constraint: number | null;
    /** Guess the next tokens, so that several come of one step. What is generated does not depend on it. */
    speculation: Speculation | null;
    /**
     * Sample only tokens of this mask of the run, by its `id`, besides what the constraint allows. Where both leave
     * nothing, it ends as `complete` if the constraint may end, and with an error otherwise.
     */
    mask: number | null;
  }
  /**
   * How the next tokens are guessed. Where the context's last tokens stood before, in the expected text or in the context
   * itself, what followed them there is guessed to follow now. The model checks a guess in one step, and the sampler
   * chooses each token as always: a guess that is right saves a step, one that is wrong costs the rows that were computed
   * for it.
   */
  export interface Speculation {
    /** Tokens guessed for one step, at most: 1 to 32. Fewer, the less comes of them. */
    maxDraft: number;
    /** How many of the last tokens must have stood there: 1 to 8. */
    ngram: number;
    /**
     * A text that is expected, at least in parts, such as the one that is to be edited: at most 16,384 tokens. The
     * generation is guessed to begin with it.
     */
    expected: Token[];
  }
  /** Why a generation ended. */
  export type FinishReason = "eos" | "stop-token" | "stop-string" | "length" | "complete" | "cancelled" | "stopped" | "deadlock";
  /** What a generation used. */
  export interface Usage {
    /** Tokens in the context when it began. */
    promptTokens: number;
    /**
     * Of these, tokens whose keys and values were there already: from a fork, a flush, an earlier generation, a saved
     * context, or the prefix cache.
     */
    cachedTokens: number;
    /** Tokens generated, forced ones included. */
    generatedTokens: number;
    /** Of these, tokens that the constraint left no choice about: they were appended without being sampled. */
    forcedTokens: number;
    /** Tokens guessed by speculation. */
    draftTokens: number;
    /** Of these, tokens that were generated indeed: they took no step of their own. */
    acceptedTokens: number;
    /** Pages that the context held at the end. */
    pages: number;
    /** Of these, pages that it shared with other contexts. */
    sharedPages: number;
    /** Nanoseconds from the call to the first token, and to the end. */
    firstTokenNs: number;
    totalNs: number;
  }
  /** The log-probability of a token. */
  export interface TokenLogProbability {
    token: Token;
    /** Natural logarithm, before temperature and after penalties, bias and constraint: a forced token has 0. */
    logProbability: number;
  }
  /** Log-probabilities at one generated token. */
  export interface PositionLogProbabilities {
    chosen: TokenLogProbability;
    /** The most likely tokens, most likely first. */
    top: TokenLogProbability[];
  }
  /** How a generation ended. */
  export interface Finish {
    reason: FinishReason;
    /** What stopped it, when that was a string. */
    stopString: string | null;
    usage: Usage;
  }
  /** What a generation has produced since it was last read. */
  export interface Chunk {
    /** Whole characters only; without eos tokens, and without the string that stopped it. */
    text: string;
    /** The tokens sampled or forced, eos tokens included. Text may lag behind its tokens. */
    tokens: Token[];
    /** One for each token, if asked for. */
    logProbabilities: PositionLogProbabilities[];
    /** Set in the last chunk. */
    finish: Finish | null;
  }
  /**
   * One generation. Dropping it cancels it. Its tokens are appended to the context as they come; the token that
   * stopped it stays in the context.
   */
  export class Generation {
    private constructor();
    [Symbol.dispose](): void;
    /**
     * The event that becomes ready when there is something to read: any chunk if streaming, otherwise the end. The same
     * at every call; it goes away with the generation.
     */
    ready(): Event;
    /** What has come since the last read, which may be nothing. After the last chunk, an error. */
    read(): Chunk;
    /**
     * Waits until there is something to read, and reads it: a poll of `ready` and a `read` in one call. The whole
     * program waits, so this is for when it has nothing else to do.
     */
    next(): Chunk;
    /** Ends it at the next step, with what it has. No effect if it has ended. */
    cancel(): void;
  }
  /** Starts a generation at the end of the context. */
  export function generate(context: Context, sampling: Sampling, stop: StopConditions, options: Options): Generation;
}

/** What the run tells people. Both count towards the run's output limit. */
declare module "tartlet:inferlet/log@0.1.0" {
  /** How much a log line matters. */
  export type Level = "trace" | "debug" | "info" | "warn" | "error";
  /** Output text, as it is: newlines are the program's own. */
  export function print(text: string): void;
  /** One log line. */
  export function log(level: Level, message: string): void;
}

/** The models that the host serves, and their tokenizers. */
declare module "tartlet:inferlet/models@0.1.0" {
  import type { Token, Error } from "tartlet:inferlet/types@0.1.0";
  /** Facts about a model. */
  export interface ModelInfo {
    /** The name it is opened by. */
    name: string;
    /** The architecture, as the model's configuration names it, for example `LlamaForCausalLM`. */
    architecture: string;
    /** The greatest length of a context, in tokens. */
    contextLength: number;
    /** How many token ids there are: valid ids are 0 to this, exclusive. */
    vocabularySize: number;
    /** Tokens in one page of the KV cache. */
    pageSize: number;
    /** The tokens that end a turn or a text; each ends a generation unless told otherwise. */
    eosTokens: Token[];
    /**
     * What the model can do beyond plain text, for example `chat` (it has a chat template), `evict` (tokens can be
     * evicted from its contexts) or `constraints` (generations can follow them).
     */
    features: string[];
    /** The names of the LoRA adapters that contexts can be made with. */
    adapters: string[];
  }
  /** A model that contexts can be made of. */
  export class Model {
    private constructor();
    [Symbol.dispose](): void;
    /** Opens the model of that name; without a name the host's default. */
    static open(name: string | null): Model;
    /** The model's facts. */
    info(): ModelInfo;
    /** Token ids of a text. Special tokens that are written out in it (such as `<|im_end|>`) become their ids. */
    tokenize(text: string): Token[];
    /** The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD. */
    detokenize(tokens: Token[]): string;
    /** The bytes of one token, which need not be whole characters. */
    tokenBytes(token: Token): Uint8Array;
    /**
     * The bytes of `count` tokens from `first` on, or of those that there are: each byte as the character of that number
     * (Latin-1), and U+0100 after each token. For all tokens at once, one call instead of tens of thousands.
     */
    vocabulary(first: Token, count: number): string;
  }
  /** The facts of every model that the run may open, the default first. */
  export function listModels(): ModelInfo[];
}

/** The run itself. */
declare module "tartlet:inferlet/runs@0.1.0" {
  /** Who am I. */
  export interface RunInfo {
    /** The run's id. */
    id: string;
    /** The inferlet's name. */
    inferlet: string;
    /** The tenant on whose behalf it runs. */
    tenant: string;
    /** What the run's random choices come from: the same seed and input give the same run. */
    seed: number;
  }
  /** One limit, and what has been used of it. */
  export interface Limit {
    /** As the host's own settings call it, for example `max_tokens`, `max_kv_pages`, `max_wall_ms`. */
    name: string;
    used: number;
    /** Nothing: not limited. */
    allowed: number | null;
  }
  /** Who am I. */
  export function info(): RunInfo;
  /** The run's limits. Exceeding one ends the run. */
  export function limits(): Limit[];
}

/** How a language runner gets the author's program. Only the runners that ship with Tartlet may import it. */
declare module "tartlet:inferlet/source@0.1.0" {
  /**
   * Waits until the runner is given a program, and returns it as JSON:
   * `{"main": module name, "files": {file name: text, or {"text": text, "code": base64 of compiled code}}, "input": any}`.
   */
  export function program(): string;
}

/**
 * What a controller hears and answers: the types of the world `controller`.
 *
 * A controller steers one generation. It hears what really happened in the last step while the model computes the next one,
 * and says what that is to append. A generation begins as one sequence, number 0; forks add more, and all of them are in one call.
 */
declare module "tartlet:inferlet/steering@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  /** What `start` answers. */
  export interface StartAnswer {
    /** Replaces the tokens of the context, if given. */
    prompt: Token[] | null;
    /** Report the log-probability of each sampled token and of this many most likely ones (at most 20). */
    logProbabilities: number | null;
  }
  /** The log-probability of a token. */
  export interface TokenLogProbability {
    token: Token;
    /** Natural logarithm, before temperature, and after penalties, bias and mask. */
    logProbability: number;
  }
  /** Log-probabilities where a token was sampled. */
  export interface SampledLogProbabilities {
    chosen: TokenLogProbability;
    /** The most likely tokens, most likely first. */
    top: TokenLogProbability[];
  }
  /** What happened to a sequence since it was last decided on. At the first call for a sequence, and after a wait, that is nothing. */
  export interface Outcome {
    /** Its number. */
    sequence: number;
    /** Tokens that were dropped from its end, of those that were there. */
    backtrack: number;
    /** Then appended. */
    tokens: Token[];
    /** What was sampled, even if a splice has replaced it. */
    sampled: Token | null;
    /**
     * At the first call after a fork: the numbers of all that came of it, in the order of its branches. The first is that of the
     * sequence which forked.
     */
    siblings: number[];
    /** Where it sampled, if `start` asked for them. */
    logProbabilities: SampledLogProbabilities | null;
    /** The last decision could not be carried out, and has changed nothing. 16 of these in a row end the generation. */
    refused: Error | null;
    /**
     * The sequence has ended: the name of a `generation.finish-reason`. The decision on it is ignored. One
     * that the controller has stopped is not told.
     */
    finishReason: string | null;
  }
  /** A change of what a step appends: some tokens are dropped, then others appended, which nobody samples. */
  export interface Splice {
    /** It holds if one of these is sampled; empty: whatever is. */
    whenSampled: Token[];
    /** Tokens to drop. If the step samples, this counts the sampled token, too: 1 drops only that, 0 keeps it. */
    backtrack: number;
    tokens: Token[];
  }
  /** What a sequence does in its next step. */
  export interface Branch {
    /** Sample a token. Without, the step only appends and drops what its one splice says. */
    sample: boolean;
    /** Only these tokens can be sampled; nothing: all. */
    allow: Token[] | null;
    /** Only tokens of this mask, too, by its `id`. */
    mask: number | null;
    /** Added to the logits of single tokens, besides the generation's own. */
    bias: [Token, number][];
    /** Instead of the generation's own. */
    temperature: number | null;
    /** If it samples, the first whose condition holds counts; otherwise there is at most one, without a condition. */
    splices: Splice[];
  }
  /** What a sequence does next. */
  export type Decision = { tag: "go-on" } | { tag: "branches"; val: Branch[] } | { tag: "wait"; val: Event[] };
}

/**
 * Generating token by token, with the program in control.
 *
 * A program answers before each token: what may be sampled, what is taken back, what is written instead. The forward pass
 * of a token runs while the program works on its next answer, so one that thinks for less than that loses nothing. One
 * that takes longer delays nobody else: its context waits outside of the batch.
 */
declare module "tartlet:inferlet/stepping@0.1.0" {
  import type { Token, Event, Error } from "tartlet:inferlet/types@0.1.0";
  import type { Context } from "tartlet:inferlet/contexts@0.1.0";
  import type { Sampling, StopConditions, PositionLogProbabilities, Finish } from "tartlet:inferlet/generation@0.1.0";
  /** A change of what a step appends. */
  export interface Splice {
    /** Holds if one of these is sampled; empty: always. Must be empty in a step that samples nothing. At most 1,024. */
    whenSampled: Token[];
    /**
     * Drop so many tokens from the end. In a step that samples, this counts the sampled token, too: 0 keeps it, 1
     * replaces it, 2 also drops the one before it. What was there before the first step can be dropped as well.
     */
    backtrack: number;
    /** Then append these. They are computed together, before anything else is sampled. */
    tokens: Token[];
  }
  /** What a program wants of one step. Nothing of it lasts beyond that step, or concerns another context. */
  export interface Answer {
    /** Sample a token. A step that does not only carries out its splice, if it has one. */
    sample: boolean;
    /** Only these tokens can be sampled. A list that is there must not be empty. */
    allow: Token[] | null;
    /**
     * Only tokens in this mask of the run, by its `id`. All restrictions hold together, those of the sampling and of the
     * constraint, too; where they leave nothing, the answer is refused.
     */
    mask: number | null;
    /** Added to the logits of single tokens, besides the sampling's own; at most 1,024. */
    bias: [Token, number][];
    /** Added to the logits of all tokens of a mask of the run, by its `id`; at most 4. */
    boosts: [number, number][];
    /** The temperature of this step. */
    temperature: number | null;
    /** The first whose condition holds counts; at most 64, or one if nothing is sampled. */
    splices: Splice[];
  }
  /** What a step has really done. */
  export interface Outcome {
    /** Tokens dropped, of those that were there before the step. */
    backtrack: number;
    /** Tokens appended after that. */
    tokens: Token[];
    /** The token that was sampled, even if a splice has replaced it. */
    sampled: Token | null;
    /** Characters (Unicode scalar values) to drop from the end of the text so far, before `text` is added. */
    textBacktrack: number;
    /** Whole characters only; may lag behind the tokens. */
    text: string;
    /** At the sampled token, if asked for. */
    logProbabilities: PositionLogProbabilities | null;
    /** Set if this was the last step: a stop condition holds for what was appended. */
    finish: Finish | null;
  }
  /** What else is wanted. */
  export interface Options {
    /** Report the log-probability of each sampled token, and of this many most likely ones (at most 20). */
    logProbabilities: number | null;
    /**
     * What is sampled follows this constraint of the run, by its `id`, from here on: it goes back and on with the text.
     * A backtrack beyond its beginning is refused. What it does not allow can be spliced in, but nothing can be
     * sampled then until it is taken back.
     */
    constraint: number | null;
    /** All that is sampled is in this mask of the run, by its `id`. */
    mask: number | null;
  }
  /**
   * A stepped generation. Its context is busy as long as it lasts, but can be read, and forked between two steps.
   * Dropping it ends it. The run's limit `max_step_ms` ends it, with the error `deadline-exceeded`, if the program does
   * not answer for so long after an outcome.
   */
  export class Steps {
    private constructor();
    [Symbol.dispose](): void;
    /**
     * Answers, waits for the outcome, and reads it. The whole program waits. A refused answer is an error and changes
     * nothing; another one may follow.
     */
    next(answer: Answer): Outcome;
    /** Only answers: the outcome comes with `ready` and `outcome`, so that a program can have many going on. */
    answer(answer: Answer): void;
    /**
     * The event that becomes ready with each outcome, refusal or end. The same at every call; it goes away with the
     * steps.
     */
    ready(): Event;
    /** What the step that was answered last has done, once. Before that, an error: `unavailable`. */
    outcome(): Outcome;
    /**
     * Forks the context and the steps between two steps: the child has the same tokens, penalties, constraint and stop
     * conditions, and shares the logits, so that it can sample at once, as its own answer says. Without a seed, the run
     * draws it.
     */
    fork(seed: number | null): [Context, Steps];
    /** Says that the program waits for something else now: until its next answer, its time is not counted. */
    hold(): void;
    /** Ends it. What is kept for it is given back; the tokens stay in the context. No effect if it has ended. */
    stop(): void;
  }
  /** Starts at the end of the context. Nothing is computed or sampled that no answer asks for, but what is in the context. */
  export function start(context: Context, sampling: Sampling, stop: StopConditions, options: Options): Steps;
}

/**
 * What a run keeps by name: its variables, which all that belongs to the run can read, write and wait for. They are gone
 * with the run. Every write is told to the client that launched it.
 *
 * Values are text. How many variables there may be, and how large all names and values together, is limited: what would
 * exceed that is refused with `quota-exceeded`. Each write counts towards the run's output limit with the name and the whole
 * value. A name has 1 to 256 bytes.
 */
declare module "tartlet:inferlet/store@0.1.0" {
  import type { Event, Error } from "tartlet:inferlet/types@0.1.0";
  /** A variable as it is now. */
  export interface Variable {
    /** How many times it has been written: 1 after the first time. */
    version: number;
    value: string;
  }
  /** What became of a compare-and-swap. */
  export interface Swap {
    /** Whether the value was written. */
    written: boolean;
    /** If it was, the new version and value; if not, those that were found. Version 0 is a variable that does not exist. */
    now: Variable;
  }
  /** A variable's name and version. */
  export interface VariableVersion {
    name: string;
    version: number;
  }
  /** The variable of that name, if there is one. */
  export function getVariable(name: string): Variable | null;
  /** Writes a variable, which need not exist. The new version. */
  export function setVariable(name: string, value: string): number;
  /** Adds to the end of a variable; one that does not exist is empty. The new version. */
  export function appendVariable(name: string, value: string): number;
  /** Writes a variable if it still has that version; 0 if it does not exist yet. */
  export function compareAndSwapVariable(name: string, value: string, version: number): Swap;
  /** All variables, in the order in which they were first written. */
  export function listVariables(): VariableVersion[];
  /**
   * An event that becomes ready as soon as the variable's version is above `version`, which it may be already. The
   * variable need not exist: above 0 waits for its first write.
   */
  export function variableAbove(name: string, version: number): Event;
}

/** What the other interfaces share. */
declare module "tartlet:inferlet/types@0.1.0" {
  /** A vocabulary id of the model that the context belongs to. */
  export type Token = number;
  /** The id of something that a run can wait for with `events.poll`. Ids are the run's own and are never reused. */
  export type Event = number;
  /** Why a call could not be carried out. */
  export type ErrorCode = "invalid-argument" | "not-found" | "already-exists" | "permission-denied" | "quota-exceeded" | "kv-exhausted" | "context-overflow" | "deadline-exceeded" | "cancelled" | "unsupported" | "unavailable" | "internal" | "deadlock" | "program-failed";
  /** A refused or failed call: what happened, and what to do about it. */
  export interface Error {
    code: ErrorCode;
    /** What happened, with the numbers: what was asked, what is allowed. */
    message: string;
    /** What to do about it; empty if there is nothing to add. */
    hint: string;
  }
}
