/** Generations as programs hold them: a promise of the whole draft, or the chunks one by one. */

import { HostPromise } from "./async/promise";
import type { Chunk, Draft } from "./draft";
import { TartletError } from "./errors";
import type { Generating } from "./generating";

/** One generation, made by `context.generate`: a promise of its draft that can be cancelled. */
export class Generation<V = unknown> implements Promise<Draft<V>> {
  readonly [Symbol.toStringTag] = "Generation";
  readonly #generating: Generating<any>;
  readonly #whole: Promise<Draft<V>>;

  /** For the SDK alone. */
  constructor(generating: Generating<any>) {
    this.#generating = generating;
    this.#whole = generating.whole();
  }

  /** End it at the next step, with what it has: its finish reason is then `cancelled`. */
  cancel(): void {
    this.#generating.cancel();
  }

  then<A = Draft<V>, B = never>(
    onFulfilled?: ((draft: Draft<V>) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: any) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#whole.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: any) => B | PromiseLike<B>) | null): Promise<Draft<V> | B> {
    return this.#whole.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<Draft<V>> {
    return this.#whole.finally(onFinally);
  }
}

/**
 * One generation, made by `context.stream`: iterate it with `for await`. It starts with the first chunk that is asked for;
 * leaving the loop early ends it.
 */
export class GenerationStream<V = unknown> implements AsyncIterableIterator<Chunk> {
  readonly #generating: Generating<any>;
  #pending: Chunk[] = [];

  /** For the SDK alone. */
  constructor(generating: Generating<any>) {
    this.#generating = generating;
  }

  /** The whole draft. Throws `unavailable` before the generation has ended. */
  get result(): Draft<V> {
    const { result } = this.#generating;
    if (result === null) {
      const more = { call: "GenerationStream.result", hint: "Iterate it to its end." };
      throw new TartletError("unavailable", "the generation has not ended yet", more);
    }
    return result;
  }

  /** End it at the next step, with what it has: its finish reason is then `cancelled`. */
  cancel(): void {
    this.#generating.cancel();
  }

  async next(): Promise<IteratorResult<Chunk>> {
    await this.#generating.start(true);
    while (this.#pending.length === 0 && this.#generating.result === null) {
      this.#pending = await this.#generating.advance();
    }
    const value = this.#pending.shift();
    return value === undefined ? { done: true, value: undefined } : { done: false, value };
  }

  return(): Promise<IteratorResult<Chunk>> {
    this.#generating.drop();
    return HostPromise.resolve({ done: true as const, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
