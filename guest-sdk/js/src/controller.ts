/**
 * Controllers: programs that steer the generations of others, token by token.
 *
 * export class NoNumbers extends Controller {
 *   start() {
 *     this.words = Mask.where((bytes) => !bytes.some((byte) => byte >= 48 && byte < 58));
 *   }
 *   step() {
 *     return { mask: this.words };
 *   }
 * }
 */

import type { Splice } from "./answer";
import type { FinishReason, TokenLogprobs } from "./draft";
import type { TartletError } from "./errors";
import type { Mask } from "./mask";

/** One sequence of the generation, as it really is: what was sampled, forced and taken back is in it. */
export class Sequence {
  /** For the SDK alone. */
  constructor(
    /** Its number: 0 is the first, forks have others. */
    readonly id: number,
    /** All of its tokens, those of the prompt too. Not to be changed. */
    readonly tokens: number[],
    /** Tokens of the prompt. */
    readonly promptLength: number,
  ) {}

  /** The tokens after the prompt. */
  get generated(): number[] {
    return this.tokens.slice(this.promptLength);
  }
}

/** What has happened to a sequence in its last step. At the first call, and after a wait, that is nothing. */
export interface StepInfo {
  /** Tokens that were dropped from the end. */
  readonly backtrack: number;
  /** Then appended. */
  readonly tokens: readonly number[];
  /** What was sampled, even if a splice has replaced it. */
  readonly sampled: number | null;
  /** At the first call after a fork: the ids of all that came of it, in the order of the branches. */
  readonly siblings: readonly number[];
  /** Where it sampled, if `logprobs` of the controller asks for them. */
  readonly logprobs: TokenLogprobs | null;
  /** The last decision could not be carried out, and has changed nothing. */
  readonly refused: TartletError | null;
  /** For `Controller.end`: why the sequence has ended. */
  readonly finishReason: FinishReason | null;
}

/** What a sequence does in its next step. */
export interface Branch {
  /** Without, the step only does what its one splice says. */
  sample?: boolean;
  /** Only these tokens can be sampled; all, if it is left out. */
  allow?: Iterable<number>;
  /** Only tokens of this set, too: a mask that is kept costs less than a list each time. */
  mask?: Mask;
  /** Added to the logits of single tokens. */
  bias?: Map<number, number> | Record<number, number>;
  /** Instead of the generation's own. */
  temperature?: number;
  /** If it samples, the first whose condition holds counts. */
  splices?: Iterable<Splice>;
}

/** Give up the place in the batch until a variable of the run has changed or a time has passed. */
export interface Wait {
  wait: {
    /** The variable. */
    variable?: string;
    /** Its version to rise above; by default it has to exist. */
    above?: number;
    ms?: number;
  };
}

/** What a step answers. */
export type Decision = Branch | Iterable<Branch> | Wait | null | undefined | void;

/** The branch that drops `backtrack` tokens and appends these, without sampling. */
export function force(tokens: Iterable<number>, backtrack = 0): Branch {
  return { sample: false, splices: [{ tokens, backtrack }] };
}

/**
 * What steers a generation. Export a subclass; one instance steers one sequence, and is copied when that forks.
 *
 * The copy is a deep one, of all that the instance holds in public fields. What all sequences share belongs into the module.
 */
export class Controller {
  /** Set it to have the log-probability of each sampled token, and of this many most likely ones (at most 20). */
  logprobs: number | null = null;

  /**
   * Begin. A text or tokens that it returns replace the prompt; nothing leaves it.
   *
   * @param config What whoever starts the generation has given, decoded from JSON.
   * @param prompt The tokens of the context.
   */
  start(config: any, prompt: number[]): string | Iterable<number> | null | undefined | void {}

  /**
   * Decide what the sequence does next: after each step, while the model computes the next one.
   *
   * @returns A branch; nothing, to sample as the generation says; several branches to fork, of which the first is the sequence
   *   itself; no branch, `[]`, to stop; or a `{ wait }`.
   */
  step(sequence: Sequence, info: StepInfo): Decision {}

  /** Hear that the sequence has ended, unless it was this controller who stopped it. */
  end(sequence: Sequence, info: StepInfo): void {}
}
