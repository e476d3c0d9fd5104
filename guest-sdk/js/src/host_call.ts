/** Calls into the host: its errors become `TartletError`s that name the SDK's own call. */

import type { Error as HostError } from "tartlet:inferlet/types@0.1.0";

import { TartletError } from "./errors";

/** The error for one of the contract's. */
export function fromHost(error: HostError, name: string): TartletError {
  return new TartletError(error.code, error.message, { hint: error.hint, call: name });
}

/** Call the host. Throws the `TartletError` of its error, which names the SDK's own call `name`. */
export function call<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const payload = (error as { payload?: HostError } | null)?.payload;
    if (payload === undefined || typeof payload.code !== "string") {
      throw error;
    }
    throw fromHost(payload, name);
  }
}

/** Give a handle of the host's back, if there is one. */
export function dispose(handle: { [Symbol.dispose](): void } | null): void {
  handle?.[Symbol.dispose]();
}
