/** Contexts: sequences of tokens whose keys and values live in pages of the shared KV cache. */

import type { Context as Handle, Role } from "tartlet:inferlet/contexts@0.1.0";
import type { Model as ModelHandle } from "tartlet:inferlet/models@0.1.0";

import { finish } from "./async/loop";
import * as checks from "./checks";
import type { ConstraintOptions } from "./constraint";
import type { TokenLogprob } from "./draft";
import { invalid } from "./errors";
import { compute, type ForwardOptions, type Pass, type Row } from "./forward";
import type { Generation, GenerationStream } from "./generation";
import { generate, stream } from "./generate";
import { call, dispose } from "./host_call";
import type { Mask } from "./mask";
import type { Sampler } from "./sampler";
import * as scoring from "./scoring";
import type { Speculation } from "./speculation";
import { begin, type Steps } from "./steps";
import type { StopCondition } from "./stop";
import { verify } from "./verification";

/** What `Context.generate` and `Context.steps` both take. */
export interface SamplingOptions extends ConstraintOptions {
  /** How the next token is chosen; greedy by default. */
  sampler?: Sampler;
  /** When to stop, besides the model's eos tokens and the context length. */
  stop?: StopCondition;
  /** Short for `stop: maxTokens(n)`; adds to `stop`. */
  maxTokens?: number;
  /** Report the log-probability of each token, and of this many most likely ones (0 to 20). */
  logprobs?: number;
  /** Sample only tokens of this set, besides what the constraint allows. */
  mask?: Mask;
  /** Gives it up when it is aborted: what waits for it rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** What `Context.generate` takes. */
export interface GenerateOptions extends SamplingOptions {
  /** Guess the next tokens, so that several come of one step. What is generated stays the same. */
  speculation?: Speculation;
  /**
   * The name of a program that steers the generation token by token, and may replace the context's tokens. The host must
   * know it, as `name` or `name@version`; or it is this very program's.
   */
  controller?: string;
  /** What the controller is given, as JSON. */
  config?: unknown;
}

/** What `Context.stream` takes. */
export interface StreamOptions extends GenerateOptions {
  /**
   * Milliseconds between two chunks, at least; by default 30. Tokens that come meanwhile join the next chunk. 0 gives
   * every token at once, and takes more of the processor from the model.
   */
  chunkIntervalMs?: number;
}

const NS_PER_MS = 1e6;
const MOST_TTL_MS = 10 * 365 * 24 * 3600 * 1000;

/**
 * One sequence of tokens. Make one with `model.context()`, or `fork` another.
 *
 * Filling only appends tokens: they are computed when a generation, a fork or a flush needs them. While a generation runs
 * on it, or a forward pass is neither committed nor discarded, a context is busy: it can be read and forked, everything else
 * throws `unavailable`. A context frees its pages when it is closed, or no longer referred to; `using` closes it at the end
 * of a block.
 */
export class Context {
  #handle: Handle | null;

  /** For the SDK alone. */
  constructor(
    handle: Handle,
    readonly modelHandle: ModelHandle,
  ) {
    this.#handle = handle;
  }

  /** Append a system message, in the form that the model's chat template gives it. */
  system(text: string): void {
    this.#message("system", text);
  }

  /** Append a message of the user. */
  user(text: string): void {
    this.#message("user", text);
  }

  /** Append a message of the assistant, as if the model had said it. */
  assistant(text: string): void {
    this.#message("assistant", text);
  }

  /** Append the result of a tool call. */
  tool(text: string): void {
    this.#message("tool", text);
  }

  /** Append a text as it is. Special tokens written out in it become their ids. */
  fill(text: string): void {
    const handle = this.handleFor("fill");
    const given = checks.text(text, "text", "Context.fill");
    call("Context.fill", () => handle.fill(given));
  }

  /** Append token ids. */
  fillTokens(tokens: Iterable<number>): void {
    const handle = this.handleFor("fillTokens");
    const ids = checks.tokens(tokens, "tokens", "Context.fillTokens");
    call("Context.fillTokens", () => handle.fillTokens(ids));
  }

  /** Begin the assistant's turn. A generation does so by itself after a chat message of another role. */
  cue(): void {
    const handle = this.handleFor("cue");
    call("Context.cue", () => handle.cue());
  }

  /** Compute what has been filled, and wait until that is done. */
  async flush(options?: { signal?: AbortSignal }): Promise<void> {
    const { signal } = checks.options(options, ["signal"], "Context.flush");
    const handle = this.handleFor("flush");
    await finish(
      call("Context.flush", () => handle.flush()),
      "Context.flush",
      signal,
    );
  }

  /**
   * Make a context with the same tokens, which shares the pages: nothing is copied or computed twice.
   *
   * What the two append afterwards does not concern the other.
   */
  fork(): Context {
    const handle = this.handleFor("fork");
    return new Context(
      call("Context.fork", () => handle.fork()),
      this.modelHandle,
    );
  }

  /** Drop the tokens after the first `length`. */
  truncate(length: number): void {
    const handle = this.handleFor("truncate");
    const given = checks.whole(length, "length", "Context.truncate");
    call("Context.truncate", () => handle.truncate(given));
  }

  /**
   * Drop the tokens from `start` to before `end` out of the middle, and wait until that is done.
   *
   * Tokens that come later do not see them, as if they were masked; what is kept stays as it was computed. They still count
   * for the context length. The last token must stay. Throws `unsupported` if the model's features do not have `evict`.
   */
  async evict(start: number, end: number): Promise<void> {
    const name = "Context.evict";
    const handle = this.handleFor("evict");
    const from = checks.whole(start, "start", name);
    const to = checks.whole(end, "end", name);
    await finish(
      call(name, () => handle.evict(from, to)),
      name,
    );
  }

  /**
   * Evict all but the first and the last tokens, if there are more.
   *
   * With a few first tokens, on which models lean, and a window of last ones, a long generation costs the same for each
   * token, in time and in pages.
   */
  async keep(options: { first: number; last: number }): Promise<void> {
    const name = "Context.keep";
    const { first, last } = checks.options(options, ["first", "last"], name);
    checks.whole(first, "first", name);
    checks.whole(last, "last", name, 1);
    const { length } = this;
    if (length > first + last) {
      await this.evict(first, length - last);
    }
  }

  /**
   * Save the context under a name, for this tenant's later runs, and wait until that is done.
   *
   * What has been filled is computed first, and kept: opening it again costs a read. Throws `already-exists` if the name is
   * taken, and `quota-exceeded` if the tenant's saved contexts would take too much.
   *
   * @param name 1 to 128 letters, digits and `. _ : / -`; begins with a letter or a digit.
   * @param options.ttlMs Milliseconds for which it is kept; without it, until it is deleted.
   * @param options.overwrite Take the place of what is saved under that name.
   */
  async save(name: string, options?: { ttlMs?: number; overwrite?: boolean }): Promise<void> {
    const called = "Context.save";
    const handle = this.handleFor("save");
    const given = checks.text(name, "name", called);
    const { ttlMs, overwrite } = checks.options(options, ["ttlMs", "overwrite"], called);
    if (ttlMs !== undefined && checks.number(ttlMs, "ttlMs", called, 0, MOST_TTL_MS) === 0) {
      throw invalid(called, "ttlMs must be more than 0");
    }
    const record = { ttlNs: ttlMs === undefined ? null : Math.ceil(ttlMs * NS_PER_MS), overwrite: Boolean(overwrite) };
    await finish(
      call(called, () => handle.save(given, record)),
      called,
    );
  }

  /** All tokens, in order. */
  get tokens(): number[] {
    return this.handleFor("tokens").tokens();
  }

  /** Number of tokens. */
  get length(): number {
    return this.handleFor("length").length();
  }

  /** How many positions are taken: those of its tokens, and those of tokens that were evicted before them. */
  get positions(): number {
    return this.handleFor("positions").positions();
  }

  /** How many tokens can be added before the model's context length is reached. */
  get room(): number {
    return this.modelHandle.info().contextLength - this.positions;
  }

  /**
   * Generate text at the end of the context, under one constraint or none. It starts at once; await it for the whole draft.
   *
   * Throws `invalid-argument` for an option out of its range, or one that there is not. Rejects with `quota-exceeded`,
   * `unavailable`, `context-overflow`, `kv-exhausted`, `not-found` (no such controller), `program-failed`, ...
   */
  generate<V = unknown>(options?: GenerateOptions): Generation<V> {
    return generate(this, options);
  }

  /** As `generate`, with the text as it comes: `for await (const chunk of context.stream())`. */
  stream<V = unknown>(options?: StreamOptions): GenerationStream<V> {
    return stream(this, options);
  }

  /**
   * Compute tokens after the last one without keeping them, and see what the model says of them.
   *
   * The context is busy until the pass that comes of it is committed or discarded. As a generation does, it begins the
   * assistant's turn first if the last thing filled was a message.
   */
  forward(tokens: Iterable<number> = [], options?: ForwardOptions): Promise<Pass> {
    return compute(this, tokens, options, "Context.forward");
  }

  /**
   * Append what the sampler chooses, as long as that is the next token of a draft, and one token more.
   *
   * All of it is one pass, so a draft of your own that the model goes along with is faster than a generation. With the same
   * seed, and as `sampleIndex` the number of tokens sampled before, the tokens are those of a generation.
   *
   * @param draft Tokens that you expect: at most 63.
   * @returns The tokens appended: the beginning of the draft, and one that the sampler has chosen after it.
   */
  verify(draft: Iterable<number>, options?: { sampler?: Sampler; sampleIndex?: number }): Promise<number[]> {
    return verify(this, draft, options);
  }

  /**
   * How likely each of several texts is to come next: its log-probability, the sum over its tokens.
   *
   * They are computed together, what they have in common once, and nothing is kept. A text is split into tokens by itself,
   * as `fill` does: where there would be a space before it, begin it with one.
   */
  score(texts: Iterable<string>): Promise<number[]> {
    return scoring.score(this, texts);
  }

  /** The tokens of a text, each with its log-probability if the text followed the context. Keeps nothing. */
  logprobs(text: string): Promise<TokenLogprob[]> {
    return scoring.logprobs(this, text);
  }

  /** What may come next: the `top` most likely tokens with their log-probabilities, and the entropy. */
  async nextDistribution(top = 20): Promise<Row> {
    const name = "Context.nextDistribution";
    const ask = [{ top: checks.whole(top, "top", name), entropy: true }];
    using found = await compute(this, [], { ask }, name);
    return found.rows[0]!;
  }

  /**
   * Generate token by token at the end of the context, with the program in control between them: `await steps.next(...)`
   * for each token, and `steps.force`, `steps.backtrack` and `steps.fork` where the program wants to.
   *
   * The context is busy until `steps.stop()`; `using steps = await context.steps()` stops at the end of the block.
   */
  steps(options?: SamplingOptions): Promise<Steps> {
    return begin(this, options);
  }

  /** Free the context and its share of the pages. A generation that runs on it should be ended first. */
  close(): void {
    dispose(this.#handle);
    this.#handle = null;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** The host's handle, for a method; for the SDK alone. Throws `invalid-argument` if the context was closed. */
  handleFor(method: string): Handle {
    if (this.#handle === null) {
      throw invalid(`Context.${method}`, "the context was closed");
    }
    return this.#handle;
  }

  #message(role: Role, text: string): void {
    const name = `Context.${role}`;
    const handle = this.handleFor(role);
    const given = checks.text(text, "text", name);
    call(name, () => handle.fillMessage(role, given));
  }
}
