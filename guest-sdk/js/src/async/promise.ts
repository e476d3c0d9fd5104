/** Promises whose jobs are this SDK's own: what stands in for the engine's `Promise`, with the same behaviour. */

import { enqueue } from "./jobs";

type State = "pending" | "fulfilled" | "rejected";
type Resolve<T> = (value: T | PromiseLike<T>) => void;
type Reject = (reason?: unknown) => void;
type Reaction = { fulfil: (value: any) => void; reject: Reject };

/** Rejected promises that nobody has asked about yet. */
const unheard = new Set<HostPromise<any>>();

/** Take the reasons of those that were rejected, and that nobody has asked about by now. */
export function takeUnheard(): unknown[] {
  const reasons = Array.from(unheard, (promise) => promise.reason);
  unheard.clear();
  return reasons;
}

/** A promise. */
export class HostPromise<T> implements Promise<T> {
  #state: State = "pending";
  #value: any = undefined;
  #reactions: Reaction[] | null = [];
  #isHeard = false;

  constructor(executor: (resolve: Resolve<T>, reject: Reject) => void) {
    if (typeof executor !== "function") {
      throw new TypeError("a Promise needs a function of (resolve, reject)");
    }
    const { resolve, reject } = this.#settlers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  /** Whether it is settled, and how. */
  get state(): State {
    return this.#state;
  }

  /** What it was fulfilled with. */
  get value(): T {
    return this.#value;
  }

  /** Why it was rejected. */
  get reason(): unknown {
    return this.#value;
  }

  get [Symbol.toStringTag](): string {
    return "Promise";
  }

  static get [Symbol.species](): typeof HostPromise {
    return this;
  }

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: any) => B | PromiseLike<B>) | null,
  ): HostPromise<A | B> {
    return new HostPromise<A | B>((resolve, reject) => {
      this.#react(
        typeof onFulfilled === "function" ? follow(onFulfilled, resolve, reject) : (resolve as (value: any) => void),
        typeof onRejected === "function" ? follow(onRejected, resolve, reject) : reject,
      );
    });
  }

  catch<B = never>(onRejected?: ((reason: any) => B | PromiseLike<B>) | null): HostPromise<T | B> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): HostPromise<T> {
    if (typeof onFinally !== "function") {
      return this.then();
    }
    return this.then(
      (value) => HostPromise.resolve(onFinally()).then(() => value),
      (reason) =>
        HostPromise.resolve(onFinally()).then(() => {
          throw reason;
        }),
    );
  }

  static resolve(): HostPromise<void>;
  static resolve<T>(value: T | PromiseLike<T>): HostPromise<Awaited<T>>;
  static resolve(value?: any): HostPromise<any> {
    return value instanceof HostPromise ? value : new HostPromise((resolve) => resolve(value));
  }

  static reject<T = never>(reason?: unknown): HostPromise<T> {
    return new HostPromise((_, reject) => reject(reason));
  }

  static withResolvers<T>(): { promise: HostPromise<T>; resolve: Resolve<T>; reject: Reject } {
    let resolve!: Resolve<T>, reject!: Reject;
    const promise = new HostPromise<T>((a, b) => {
      resolve = a;
      reject = b;
    });
    return { promise, resolve, reject };
  }

  static try<T, A extends unknown[]>(work: (...args: A) => T | PromiseLike<T>, ...args: A): HostPromise<T> {
    return new HostPromise((resolve) => resolve(work(...args)));
  }

  static all(values: Iterable<any>): HostPromise<any[]> {
    return new HostPromise((resolve, reject) => {
      collect(
        values,
        (keep) => [keep, reject],
        (results) => resolve(results),
      );
    });
  }

  static allSettled(values: Iterable<any>): HostPromise<PromiseSettledResult<any>[]> {
    return new HostPromise((resolve) => {
      collect(
        values,
        (keep) => [
          (value) => keep({ status: "fulfilled", value }),
          (reason) => keep({ status: "rejected", reason }),
        ],
        (results) => resolve(results),
      );
    });
  }

  static any(values: Iterable<any>): HostPromise<any> {
    return new HostPromise((resolve, reject) => {
      collect(
        values,
        (keep) => [resolve, keep],
        (reasons) => reject(new AggregateError(reasons, "all promises were rejected")),
      );
    });
  }

  static race(values: Iterable<any>): HostPromise<any> {
    return new HostPromise((resolve, reject) => {
      for (const value of values) {
        HostPromise.resolve(value).then(resolve, reject);
      }
    });
  }

  /** The two functions that settle it, of which the first call counts. */
  #settlers(): { resolve: Resolve<T>; reject: Reject } {
    let isResolved = false;
    const once =
      <V>(settle: (value: V) => void) =>
      (value: V): void => {
        if (!isResolved) {
          isResolved = true;
          settle(value);
        }
      };
    return {
      resolve: once((value: T | PromiseLike<T>) => this.#resolve(value)),
      reject: once((reason: unknown) => this.#settle("rejected", reason)) as Reject,
    };
  }

  #resolve(value: T | PromiseLike<T>): void {
    if ((value as unknown) === this) {
      this.#settle("rejected", new TypeError("a promise cannot be resolved with itself"));
      return;
    }
    if ((typeof value !== "object" && typeof value !== "function") || value === null) {
      this.#settle("fulfilled", value);
      return;
    }
    let then: unknown;
    try {
      then = (value as PromiseLike<T>).then;
    } catch (error) {
      this.#settle("rejected", error);
      return;
    }
    if (typeof then !== "function") {
      this.#settle("fulfilled", value);
      return;
    }
    enqueue(() => {
      const { resolve, reject } = this.#settlers();
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }

  #settle(state: State, value: unknown): void {
    const reactions = this.#reactions!;
    this.#state = state;
    this.#value = value;
    this.#reactions = null;
    if (state === "rejected" && !this.#isHeard) {
      unheard.add(this);
    }
    for (const reaction of reactions) {
      this.#enqueue(reaction);
    }
  }

  #react(fulfil: (value: any) => void, reject: Reject): void {
    if (!this.#isHeard) {
      this.#isHeard = true;
      unheard.delete(this);
    }
    const reaction = { fulfil, reject };
    if (this.#reactions !== null) {
      this.#reactions.push(reaction);
    } else {
      this.#enqueue(reaction);
    }
  }

  #enqueue({ fulfil, reject }: Reaction): void {
    const react = this.#state === "fulfilled" ? fulfil : reject;
    enqueue(() => react(this.#value));
  }
}

/** Settle a promise with what a handler makes of a value. */
function follow<V, R>(handler: (value: V) => R | PromiseLike<R>, resolve: Resolve<any>, reject: Reject): (value: V) => void {
  return (value) => {
    let result: R | PromiseLike<R>;
    try {
      result = handler(value);
    } catch (error) {
      reject(error);
      return;
    }
    resolve(result);
  };
}

/** Wait for several promises, keep something of each in its place, and end when all of it is there. */
function collect(
  values: Iterable<any>,
  handlers: (keep: (value: unknown) => void) => [(value: any) => void, (reason: any) => void],
  end: (kept: any[]) => void,
): void {
  const kept: unknown[] = [];
  let missing = 1;
  const arrive = (): void => {
    missing -= 1;
    if (missing === 0) {
      end(kept);
    }
  };
  let index = 0;
  for (const value of values) {
    const place = index;
    index += 1;
    missing += 1;
    kept.push(undefined);
    HostPromise.resolve(value).then(
      ...handlers((each) => {
        kept[place] = each;
        arrive();
      }),
    );
  }
  arrive();
}
