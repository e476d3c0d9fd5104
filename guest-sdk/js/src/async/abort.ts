/** `AbortController` and `AbortSignal`, as far as programs without a page need them. */

import { TartletError } from "../errors";
import { setTimeout } from "./timers";

type Listener = () => void;

/** Tells that something is to be given up. */
export class HostAbortSignal {
  aborted = false;
  reason: unknown = undefined;
  onabort: Listener | null = null;
  #listeners = new Set<Listener>();

  /** A signal that is aborted already. */
  static abort(reason?: unknown): HostAbortSignal {
    const signal = new HostAbortSignal();
    signal.abortWith(reason);
    return signal;
  }

  /** A signal that is aborted after so many milliseconds, with the error `deadline-exceeded`. */
  static timeout(delayMs: number): HostAbortSignal {
    const signal = new HostAbortSignal();
    setTimeout(() => signal.abortWith(new TartletError("deadline-exceeded", `it took longer than ${delayMs} ms`)), delayMs);
    return signal;
  }

  /** A signal that is aborted as soon as one of these is. */
  static any(signals: Iterable<HostAbortSignal>): HostAbortSignal {
    const either = new HostAbortSignal();
    for (const signal of signals) {
      if (signal.aborted) {
        either.abortWith(signal.reason);
      } else {
        signal.addEventListener("abort", () => either.abortWith(signal.reason));
      }
    }
    return either;
  }

  addEventListener(_: "abort", listener: Listener): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: "abort", listener: Listener): void {
    this.#listeners.delete(listener);
  }

  throwIfAborted(): void {
    if (this.aborted) {
      throw this.reason;
    }
  }

  /** Abort it, once; by default with the error `cancelled`. */
  abortWith(reason: unknown): void {
    if (this.aborted) {
      return;
    }
    this.aborted = true;
    this.reason = reason === undefined ? new TartletError("cancelled", "it was aborted") : reason;
    const listeners = Array.from(this.#listeners);
    this.#listeners.clear();
    this.onabort?.();
    listeners.forEach((listener) => listener());
  }
}

/** Aborts its signal. */
export class HostAbortController {
  readonly signal = new HostAbortSignal();

  abort(reason?: unknown): void {
    this.signal.abortWith(reason);
  }
}
