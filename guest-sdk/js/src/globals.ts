/** What programs expect to be there as globals, and the engine does not have, or not so that it works here. */

import { HostAbortController, HostAbortSignal } from "./async/abort";
import { enqueue } from "./async/jobs";
import { HostPromise } from "./async/promise";
import { clearTimer, setInterval, setTimeout } from "./async/timers";
import { structuredClone } from "./copying";
import { HostTextDecoder, HostTextEncoder } from "./encoding";
import { console } from "./output";
import { random } from "./random";

/** Frames of an error's stack: the engine keeps 10, of which some are the SDK's. */
const MOST_FRAMES = 50;

/** Put them there; once, when the component is built. */
export function install(): void {
  Object.assign(globalThis, {
    AbortController: HostAbortController,
    AbortSignal: HostAbortSignal,
    Promise: HostPromise,
    TextDecoder: HostTextDecoder,
    TextEncoder: HostTextEncoder,
    clearInterval: clearTimer,
    clearTimeout: clearTimer,
    console,
    queueMicrotask: enqueue,
    setInterval,
    setTimeout,
    structuredClone,
  });
  Array.fromAsync = fromAsync as typeof Array.fromAsync;
  Math.random = random;
  Object.assign(Error, { stackTraceLimit: MOST_FRAMES });
}

/** `Array.fromAsync`, which the engine does with promises of its own. */
async function fromAsync(items: any, map?: (value: any, index: number) => unknown): Promise<unknown[]> {
  const made: unknown[] = [];
  const isIterable = Symbol.iterator in items || Symbol.asyncIterator in items;
  for await (const item of isIterable ? items : Array.from(items)) {
    made.push(map === undefined ? item : await map(item, made.length));
  }
  return made;
}
