/** The one that talks to the host for a generation, whoever awaits or iterates it. */

import type { Chunk as HostChunk, Finish, Generation as Handle, Options, Sampling, StopConditions } from "tartlet:inferlet/generation@0.1.0";

import { waitFor, wake } from "./async/loop";
import type { Constraint } from "./constraint";
import type { Context } from "./context";
import { Chunk, Draft, type TokenLogprobs } from "./draft";
import { TartletError } from "./errors";
import { call, dispose } from "./host_call";
import { type Mask, maskId } from "./mask";
import type { Speculation } from "./speculation";
import { generation } from "./wit";

export const CALL = "Context.generate";

/** What is asked for, checked. */
export interface Request {
  readonly context: Context;
  readonly sampling: Sampling;
  readonly stop: StopConditions;
  readonly logprobs: number | null;
  readonly chunkIntervalNs: number;
  readonly constraint: Constraint | null;
  readonly mask: Mask | null;
  readonly speculation: Speculation | null;
  readonly signal: AbortSignal | undefined;
}

/** What the two kinds of generation's handles have in common. */
interface AnyHandle {
  ready(): number;
  cancel(): void;
  [Symbol.dispose](): void;
}

/** A generation, from its start to its draft. `H` is its handle. */
export abstract class Generating<H extends AnyHandle> {
  /** The draft, once it has ended. */
  result: Draft<any> | null = null;
  protected handle: H | null = null;
  #ready = 0;
  #starting: Promise<void> | null = null;
  #isCancelled = false;
  #onAbort: (() => void) | null = null;

  constructor(protected readonly request: Request) {}

  /** Start it, unless it has started. */
  start(streaming: boolean): Promise<void> {
    this.#starting ??= this.#start(streaming);
    return this.#starting;
  }

  /** Wait for what comes next. If this is given up or fails, so is the generation. */
  async advance(): Promise<Chunk[]> {
    this.#requireNotGivenUp();
    try {
      await waitFor(this.#ready, this.request.signal);
      if (this.handle === null) {
        this.#requireNotGivenUp();
        return [];
      }
      const chunks = this.read(this.handle);
      if (this.result !== null) {
        this.drop();
      }
      return chunks;
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Wait for its end. */
  async whole(): Promise<Draft<any>> {
    await this.start(false);
    while (this.result === null) {
      await this.advance();
    }
    return this.result;
  }

  /** End it at the next step, with what it has. */
  cancel(): void {
    this.#isCancelled = true;
    this.handle?.cancel();
  }

  /** Give the handle back, which ends the generation if it still runs. */
  drop(): void {
    const handle = this.handle;
    this.handle = null;
    if (this.#onAbort !== null) {
      this.request.signal!.removeEventListener("abort", this.#onAbort);
      this.#onAbort = null;
    }
    if (handle !== null) {
      wake(this.#ready);
      dispose(handle);
    }
  }

  /** Let the host begin. */
  protected abstract begin(options: Options): H;

  /** Read what has come; sets `result` at the end. */
  protected abstract read(handle: H): Chunk[];

  /** The draft of one sequence. */
  protected draft(text: string, tokens: number[], finish: Finish, logprobs: TokenLogprobs[], sequences?: Draft[]): Draft {
    const { constraint } = this.request;
    const isWhole = constraint !== null && (finish.reason === "complete" || finish.reason === "eos");
    return new Draft(text, tokens, finish, logprobs, isWhole ? constraint.parse(text) : null, sequences);
  }

  async #start(streaming: boolean): Promise<void> {
    const { context, constraint, signal } = this.request;
    signal?.throwIfAborted();
    const compiled = constraint === null ? null : await constraint.compile(context.modelHandle, signal);
    try {
      const handle = this.begin({
        streaming,
        chunkIntervalNs: this.request.chunkIntervalNs,
        logProbabilities: this.request.logprobs,
        constraint: compiled === null ? null : compiled.id(),
        speculation: this.request.speculation?.recordFor(context.modelHandle) ?? null,
        mask: maskId(this.request.mask, CALL),
      });
      this.handle = handle;
      this.#ready = handle.ready();
      if (this.#isCancelled) {
        handle.cancel();
      }
      if (signal !== undefined) {
        this.#onAbort = () => this.drop();
        signal.addEventListener("abort", this.#onAbort);
      }
    } finally {
      dispose(compiled);
    }
  }

  #requireNotGivenUp(): void {
    if (this.handle === null && this.result === null) {
      this.request.signal?.throwIfAborted();
      throw new TartletError("cancelled", "the generation was given up before its end", { call: CALL });
    }
  }
}

/** A generation of the contract's interface `generation`. */
export class PlainGenerating extends Generating<Handle> {
  #text = "";
  #tokens: number[] = [];
  #logprobs: TokenLogprobs[] = [];

  protected override begin(options: Options): Handle {
    const { context, sampling, stop } = this.request;
    const handle = context.handleFor("generate");
    return call(CALL, () => generation.generate(handle, sampling, stop, options));
  }

  protected override read(handle: Handle): Chunk[] {
    const read: HostChunk = call(CALL, () => handle.read());
    const chunk = Chunk.of(read);
    this.#text += chunk.text;
    this.#tokens.push(...chunk.tokens);
    this.#logprobs.push(...chunk.logprobs);
    if (read.finish !== null) {
      this.result = this.draft(this.#text, this.#tokens, read.finish, this.#logprobs);
    }
    return chunk.text || chunk.tokens.length > 0 ? [chunk] : [];
  }
}
