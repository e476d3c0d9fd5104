/** `setTimeout` and what goes with it. */

import { HostPromise } from "./promise";

interface Timer {
  id: number;
  dueMs: number;
  everyMs: number | null;
  work: () => void;
}

const MOST_DELAY_MS = 2 ** 31 - 1;

/** In the order in which they are due. */
const timers: Timer[] = [];
let lastId = 0;

/** Call a function later. The number is for `clearTimeout`. */
export function setTimeout(work: (...args: any[]) => void, delayMs = 0, ...args: unknown[]): number {
  return start(work, delayMs, args, false);
}

/** Call a function again and again. */
export function setInterval(work: (...args: any[]) => void, delayMs = 0, ...args: unknown[]): number {
  return start(work, delayMs, args, true);
}

/** Forget a timer. A number that is none does nothing. */
export function clearTimer(id?: number): void {
  const index = timers.findIndex((each) => each.id === id);
  if (index >= 0) {
    timers.splice(index, 1);
  }
}

/** Wait so many milliseconds. Rejects with the signal's reason if that is aborted. */
export function sleep(delayMs: number, options: { signal?: AbortSignal } = {}): Promise<void> {
  const { signal } = options;
  return new HostPromise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      clearTimer(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener("abort", onAbort);
  });
}

/** Call the first timer that is due; whether there was one. */
export function runDueTimers(): boolean {
  const first = timers[0];
  if (first === undefined || first.dueMs > performance.now()) {
    return false;
  }
  timers.shift();
  if (first.everyMs !== null) {
    insert({ ...first, dueMs: performance.now() + first.everyMs });
  }
  first.work();
  return true;
}

/** Milliseconds until a timer is due; null if there is none. */
export function nextDelayMs(): number | null {
  const first = timers[0];
  return first === undefined ? null : Math.max(0, first.dueMs - performance.now());
}

function start(work: (...args: any[]) => void, delayMs: number, args: unknown[], isRepeated: boolean): number {
  if (typeof work !== "function") {
    throw new TypeError(`${isRepeated ? "setInterval" : "setTimeout"} needs a function`);
  }
  const delay = Math.min(MOST_DELAY_MS, Math.max(0, Number(delayMs) || 0));
  lastId += 1;
  insert({
    id: lastId,
    dueMs: performance.now() + delay,
    everyMs: isRepeated ? Math.max(1, delay) : null,
    work: () => work(...args),
  });
  return lastId;
}

function insert(timer: Timer): void {
  let at = timers.length;
  while (at > 0 && timers[at - 1]!.dueMs > timer.dueMs) {
    at -= 1;
  }
  timers.splice(at, 0, timer);
}
