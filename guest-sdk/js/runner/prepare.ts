/** Makes the engine ready when the component is built: the snapshot of its memory is what every run starts with. */

import { install } from "../src/globals";

/** What componentize-qjs puts there of its own. */
declare const __cqjs: { runGc(): void };

/**
 * Set up, and put the memory in order: the last thing that a component does when it is built.
 *
 * A run copies each page of the snapshot's memory that it writes to. The engine collects garbage once its memory has grown by
 * half since the last time: a first collection now keeps a run from beginning with one, which would write to every object.
 */
export function prepare(): void {
  install();
  __cqjs.runGc();
}
