/** Generating token by token, with the program in control. */

import type { Answer, Outcome as HostOutcome, Steps as Handle } from "tartlet:inferlet/stepping@0.1.0";

import { answerOf, type AnswerOptions, forcing, NEXT } from "./answer";
import { waitFor, wake } from "./async/loop";
import * as checks from "./checks";
import { constraintOf } from "./constraint";
import { Context, type SamplingOptions } from "./context";
import { type FinishReason, tokenLogprobs, type TokenLogprobs, type Usage } from "./draft";
import { TartletError } from "./errors";
import { MOST_LOGPROBS, SAMPLING_OPTIONS } from "./generate";
import { call, dispose } from "./host_call";
import { maskId } from "./mask";
import { samplerOf } from "./sampler";
import { stopOf } from "./stop";
import { withoutLast } from "./text";
import { stepping } from "./wit";

/** What a step has really done. */
export interface Outcome {
  /** Tokens appended. */
  readonly tokens: readonly number[];
  /** What they add to the text: whole characters, which may come with later tokens. */
  readonly text: string;
  /** The token that was sampled, even if a splice has replaced it. */
  readonly sampled: number | null;
  /** Tokens dropped, of those that were there before the step. */
  readonly backtrack: number;
  /** Characters to drop from the text so far, before `text`. */
  readonly textBacktrack: number;
  /** At the sampled token, if they were asked for. */
  readonly logprobs: TokenLogprobs | null;
  /** Why this was the last step, if it was: `eos`, `stop-token`, `stop-string`, `length` or `complete`. */
  readonly finishReason: FinishReason | null;
  /** Set in the last step. */
  readonly usage: Usage | null;
}

/**
 * A stepped generation, made by `context.steps`.
 *
 * The model computes while the program decides: what it does between two `next` costs nothing up to the time of a forward
 * pass, and never delays anybody else. Its context is busy until `stop`; `fork` works meanwhile.
 */
export class Steps {
  /** The text of the tokens so far: whole characters, without special tokens and without the stop string. */
  text = "";
  /** The tokens so far, of this generation: not those that the context held before. */
  tokens: number[] = [];
  /** Why it has ended, if it has. */
  finishReason: FinishReason | null = null;
  #handle: Handle | null;
  readonly #ready: number;
  #isWaitedFor = false;
  #isLeft = false; // a step was answered, and its outcome has not been taken in

  /** For the SDK alone. */
  constructor(
    /** What is generated on. */
    readonly context: Context,
    handle: Handle,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#handle = handle;
    this.#ready = handle.ready();
  }

  /**
   * Sample a token, and wait for what has become of it.
   *
   * Rejects with `invalid-argument` if an option is out of its range, nothing is left to be sampled, or more is to be dropped
   * than there is: nothing has changed then, and the steps go on; and with `deadline-exceeded` if the program did not
   * answer for longer than the run's limit `max_step_ms`.
   */
  async next(options?: AnswerOptions): Promise<Outcome> {
    return this.#answer(answerOf(options), NEXT);
  }

  /** Append a text or tokens, without sampling. What is forced in a row is computed together. */
  async force(what: string | Iterable<number>): Promise<Outcome> {
    return this.#answer(forcing(this.#tokensOf(what, "Steps.force"), 0), "Steps.force");
  }

  /** Drop the last tokens, also of what the context held before, then append a text or tokens. */
  async backtrack(count: number, then: string | Iterable<number> = []): Promise<Outcome> {
    const name = "Steps.backtrack";
    return this.#answer(forcing(this.#tokensOf(then, name), checks.whole(count, "count", name)), name);
  }

  /**
   * Fork context and steps between two steps. The child has sampled, and counted, what its parent has.
   *
   * Both may sample at once, each by its own `next`: they share what has been computed. The child's context is
   * `child.context`. Stop it with `stop`, or hold it with `using`.
   *
   * @param options.seed The child's from here on; without one, the run draws it.
   */
  fork(options?: { seed?: number }): Steps {
    const name = "Steps.fork";
    const { seed } = checks.options(options, ["seed"], name);
    const handle = this.#requireHandle(name);
    if (this.#isLeft) {
      const hint = "Await it first; if it was given up, `await steps.backtrack(0)` takes in what it has done.";
      throw new TartletError("unavailable", "a step is being carried out", { hint, call: name });
    }
    const given = seed === undefined ? null : checks.whole(seed, "seed", name, 0, Number.MAX_SAFE_INTEGER);
    const [context, steps] = call(name, () => handle.fork(given));
    const child = new Steps(new Context(context, this.context.modelHandle), steps, this.signal);
    child.text = this.text;
    child.tokens = this.tokens.slice();
    return child;
  }

  /** Wait for something else, such as a variable or another branch: that time is not counted as lateness. */
  async wait<T>(promise: PromiseLike<T>): Promise<T> {
    this.#requireHandle("Steps.wait").hold();
    return await promise;
  }

  /** End it. The tokens stay in the context, which is free again. No effect if it has ended. */
  stop(): void {
    const handle = this.#handle;
    this.#handle = null;
    if (handle !== null) {
      wake(this.#ready);
      handle.stop();
      dispose(handle);
    }
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  /** Answer, wait for the outcome, and take it in; `name` is the call's. */
  async #answer(answer: Answer, name: string): Promise<Outcome> {
    const handle = this.#requireHandle(name);
    if (this.#isWaitedFor) {
      const hint = "Only one can go on with them at a time: await it first, or give each a fork.";
      throw new TartletError("unavailable", "a step of these steps is waited for already", { hint, call: name });
    }
    this.#isWaitedFor = true;
    try {
      if (this.#isLeft) {
        await this.#catchUp(name);
      }
      call(name, () => handle.answer(answer));
      this.#isLeft = true;
      return this.#takeIn(await this.#outcome(name));
    } finally {
      this.#isWaitedFor = false;
    }
  }

  /** Take in what a step has done that was given up: it was carried out all the same, or refused. */
  async #catchUp(name: string): Promise<void> {
    let outcome: HostOutcome;
    try {
      outcome = await this.#outcome(name);
    } catch (error) {
      if (error instanceof TartletError && !this.#isLeft) {
        return; // it was refused, and whoever has asked for it is gone
      }
      throw error;
    }
    this.#takeIn(outcome);
  }

  async #outcome(name: string): Promise<HostOutcome> {
    await waitFor(this.#ready, this.signal);
    const handle = this.#requireHandle(name);
    this.#isLeft = false;
    return call(name, () => handle.outcome());
  }

  /** Keep count of tokens and text. */
  #takeIn(outcome: HostOutcome): Outcome {
    this.tokens.length = Math.max(0, this.tokens.length - outcome.backtrack);
    this.tokens.push(...outcome.tokens);
    this.text = withoutLast(this.text, outcome.textBacktrack) + outcome.text;
    const { finish, logProbabilities } = outcome;
    this.finishReason = finish?.reason ?? this.finishReason;
    return {
      tokens: outcome.tokens,
      text: outcome.text,
      sampled: outcome.sampled,
      backtrack: outcome.backtrack,
      textBacktrack: outcome.textBacktrack,
      logprobs: logProbabilities === null ? null : tokenLogprobs(logProbabilities),
      finishReason: this.finishReason,
      usage: finish?.usage ?? null,
    };
  }

  #tokensOf(what: string | Iterable<number>, name: string): number[] {
    if (typeof what !== "string") {
      return checks.tokens(what, "tokens", name);
    }
    const given = checks.text(what, "text", name);
    return call(name, () => this.context.modelHandle.tokenize(given));
  }

  #requireHandle(name: string): Handle {
    if (this.#handle === null) {
      throw new TartletError("unavailable", "the steps were stopped", { hint: "Begin with context.steps().", call: name });
    }
    return this.#handle;
  }
}

/** `Context.steps`. */
export async function begin(context: Context, options: SamplingOptions | undefined): Promise<Steps> {
  const name = "Context.steps";
  const given = checks.options(options, SAMPLING_OPTIONS, name);
  const sampling = samplerOf(given.sampler, name).record;
  const stop = stopOf(given.stop, given.maxTokens, name).record;
  const constraint = constraintOf(given, name);
  const logProbabilities =
    given.logprobs === undefined ? null : checks.whole(given.logprobs, "logprobs", name, 0, MOST_LOGPROBS);
  const compiled = constraint === null ? null : await constraint.compile(context.modelHandle, given.signal);
  try {
    const record = {
      logProbabilities,
      constraint: compiled === null ? null : compiled.id(),
      mask: maskId(given.mask, name),
    };
    const handle = context.handleFor("steps");
    return new Steps(
      context,
      call(name, () => stepping.start(handle, sampling, stop, record)),
      given.signal,
    );
  } finally {
    dispose(compiled);
  }
}
