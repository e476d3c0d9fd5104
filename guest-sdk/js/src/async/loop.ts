/** What runs a program: its jobs first, then whatever comes first of timers and the host's events. */

import { TartletError } from "../errors";
import { call } from "../host_call";
import { events } from "../wit";
import { runJobs } from "./jobs";
import { HostPromise, takeUnheard } from "./promise";
import { nextDelayMs, runDueTimers } from "./timers";

const NS_PER_MS = 1e6;

/** Those that wait, by the host's event. */
const waiting = new Map<number, Set<() => void>>();

/** Run until a promise is settled; its value. Throws the reason if it is rejected, and a `deadlock` if nothing can settle it. */
export function runUntil<T>(promise: HostPromise<T>, report: (reason: unknown) => void): T {
  for (;;) {
    runJobs();
    if (promise.state === "fulfilled") {
      return promise.value;
    }
    if (promise.state === "rejected") {
      throw promise.reason;
    }
    takeUnheard().forEach(report);
    if (!runDueTimers()) {
      waitForHost();
    }
  }
}

/** Wait until the host's `event` is ready. Any number may wait for the same. */
export function waitFor(event: number, signal?: AbortSignal): Promise<void> {
  return new HostPromise((resolve, reject) => {
    const waiters = waiting.get(event) ?? new Set();
    const onAbort = (): void => {
      waiters.delete(wake);
      if (waiters.size === 0 && waiting.get(event) === waiters) {
        waiting.delete(event);
      }
      reject(signal!.reason);
    };
    const wake = (): void => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    };
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    signal?.addEventListener("abort", onAbort);
    waiters.add(wake);
    waiting.set(event, waiters);
  });
}

/** Wake those that wait for the host's `event`: it is ready, or is about to be freed. */
export function wake(event: number): void {
  const waiters = waiting.get(event);
  waiting.delete(event);
  waiters?.forEach((each) => each());
}

/** Wait for the operation behind `event` and throw its error, for the SDK's call `name`. Frees the event. */
export async function finish(event: number, name: string, signal?: AbortSignal): Promise<void> {
  try {
    await waitFor(event, signal);
  } catch (error) {
    events.dropEvent(event);
    throw error;
  }
  call(name, () => events.outcome(event));
}

function waitForHost(): void {
  const delayMs = nextDelayMs();
  if (delayMs === null && waiting.size === 0) {
    throw new TartletError("deadlock", "deadlock: everything in the run waits, and nothing is left that could wake it", {
      hint: "A promise that is awaited is never settled; perhaps its resolve is not called.",
    });
  }
  const timeoutNs = delayMs === null ? null : Math.ceil(delayMs * NS_PER_MS);
  events.poll(Array.from(waiting.keys()), timeoutNs).forEach(wake);
}
