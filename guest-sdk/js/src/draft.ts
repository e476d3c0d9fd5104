/** What a generation gives: chunks as they come, and the whole draft. */

import type { Chunk as HostChunk, Finish, FinishReason as HostFinishReason, Usage as HostUsage } from "tartlet:inferlet/generation@0.1.0";

/** Why a generation ended. */
export type FinishReason = HostFinishReason;

/** What a generation used. */
export type Usage = Readonly<HostUsage>;

/** The log-probability of a token: natural logarithm, before temperature, after penalties, bias and constraint. */
export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
}

/** Log-probabilities at one generated token. */
export interface TokenLogprobs {
  readonly chosen: TokenLogprob;
  /** The most likely tokens, most likely first. */
  readonly top: readonly TokenLogprob[];
}

interface HostLogprob {
  token: number;
  logProbability: number;
}

/** From the contract's record. */
export function tokenLogprob(record: HostLogprob): TokenLogprob {
  return { token: record.token, logprob: record.logProbability };
}

/** From the contract's record. */
export function tokenLogprobs(record: { chosen: HostLogprob; top: HostLogprob[] }): TokenLogprobs {
  return { chosen: tokenLogprob(record.chosen), top: record.top.map(tokenLogprob) };
}

/** What a generation has produced since the chunk before. */
export class Chunk {
  /** For the SDK alone. */
  constructor(
    /** Whole characters only; text may lag behind its tokens. */
    readonly text: string,
    /** The tokens sampled or forced, eos tokens included. */
    readonly tokens: readonly number[],
    /** One for each token, if asked for. */
    readonly logprobs: readonly TokenLogprobs[] = [],
    /**
     * With a controller that forks: whose it is. 0 is the context's own; the first chunk of another begins with all
     * that was generated before it forked.
     */
    readonly sequence = 0,
    /** With a controller: characters that are taken back of the sequence's text so far, before `text`. */
    readonly backtrack = 0,
  ) {}

  /** From the contract's record. */
  static of(chunk: HostChunk): Chunk {
    return new Chunk(chunk.text, chunk.tokens, chunk.logProbabilities.map(tokenLogprobs));
  }

  toString(): string {
    return this.text;
  }
}

/** A whole generation. `String(draft)` is its text. */
export class Draft<V = unknown> {
  /** Why it ended. */
  readonly finishReason: FinishReason;
  /** What stopped it, when that was a string. */
  readonly stopString: string | null;
  readonly usage: Usage;

  /** For the SDK alone. */
  constructor(
    /** Without eos tokens, and without the string that stopped it. */
    readonly text: string,
    /** The tokens sampled or forced, eos tokens included. */
    readonly tokens: readonly number[],
    finish: Finish,
    /** One for each token, if asked for. */
    readonly logprobs: readonly TokenLogprobs[],
    /**
     * Under a constraint: what the text stands for, such as the parsed JSON, or the text itself. Null without one, and
     * if something else ended it before the text was whole.
     */
    readonly value: V | null,
    /** With a controller: this one, and those of the sequences that it has forked. */
    readonly sequences: readonly Draft<V>[] = [],
  ) {
    this.finishReason = finish.reason;
    this.stopString = finish.stopString;
    this.usage = finish.usage;
  }

  toString(): string {
    return this.text;
  }
}
