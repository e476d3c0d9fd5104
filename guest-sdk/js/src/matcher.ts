/** Going through a constraint without a generation: for sampling, scoring or splicing of one's own. */

import type { Matcher as Handle, Place } from "tartlet:inferlet/constraints@0.1.0";

import { waitFor, wake } from "./async/loop";
import * as checks from "./checks";
import { type Constraint, requireConstraint } from "./constraint";
import { call, dispose } from "./host_call";
import { Mask, modelHandle } from "./mask";
import type { Model } from "./model";
import { constraints } from "./wit";

/** A place in a constraint. Each move waits until the host knows what it comes to, beside the model's work. */
export class Matcher {
  readonly #handle: Handle;
  readonly #event: number;
  #place: Place | null = null;

  private constructor(handle: Handle) {
    this.#handle = handle;
    this.#event = handle.ready();
  }

  /**
   * Begin at the beginning of a constraint, over the tokens of a model, by default the host's default.
   *
   * Throws `invalid-argument` if the constraint has an error, and `quota-exceeded` if compiling it takes too much, or the
   * tenant follows too many constraints.
   */
  static async begin(constraint: Constraint, model?: Model): Promise<Matcher> {
    const name = "Matcher.begin";
    const compiled = await requireConstraint(constraint, name).compile(modelHandle(model));
    try {
      const matcher = new Matcher(call(name, () => constraints.Matcher.begin(compiled)));
      await matcher.#arrive(name);
      return matcher;
    } finally {
      dispose(compiled);
    }
  }

  /** The tokens that may come next, eos tokens where it may end; of what is forced, the first token alone. */
  get mask(): Mask {
    return new Mask(call("Matcher.mask", () => this.#handle.mask()));
  }

  /** Tokens that come next, whatever is sampled. `advance` by them, too. */
  get forced(): number[] {
    return this.#here().forced.slice();
  }

  /** What it has gone through is a whole text of the constraint. */
  get mayEnd(): boolean {
    return this.#here().mayEnd;
  }

  /** It may end, and nothing may follow. */
  get isComplete(): boolean {
    return this.#here().isComplete;
  }

  /** Why nothing is allowed, for instance because of a token that was not; going back brings it back. */
  get problem(): string | null {
    return this.#here().problem;
  }

  /** Go on by tokens, allowed or not. */
  async advance(tokens: Iterable<number>): Promise<void> {
    const name = "Matcher.advance";
    const ids = checks.tokens(tokens, "tokens", name);
    call(name, () => this.#handle.advance(ids));
    await this.#arrive(name);
  }

  /** Go back over the last tokens. */
  async rollback(count: number): Promise<void> {
    const name = "Matcher.rollback";
    const given = checks.whole(count, "count", name);
    call(name, () => this.#handle.rollback(given));
    await this.#arrive(name);
  }

  /** Make another one at the same place, which goes its own way. */
  async fork(): Promise<Matcher> {
    const name = "Matcher.fork";
    const fork = new Matcher(call(name, () => this.#handle.fork()));
    await fork.#arrive(name);
    return fork;
  }

  /** Free it now rather than when nothing refers to it any more. */
  [Symbol.dispose](): void {
    wake(this.#event);
    dispose(this.#handle);
  }

  async #arrive(name: string): Promise<void> {
    this.#place = null;
    await waitFor(this.#event);
    this.#place = call(name, () => this.#handle.place());
  }

  /** Where it is. Throws `unavailable` while something moves it. */
  #here(): Place {
    return this.#place ?? call("Matcher", () => this.#handle.place());
  }
}
