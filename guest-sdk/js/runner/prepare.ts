/** Makes the engine ready when the component is built: the snapshot of its memory is what every run starts with. */

import warmUp from "tartlet-warm-up";

import { install } from "../src/globals";
import { Program } from "./program";

/** What componentize-qjs puts there of its own. */
declare const __cqjs: { runGc(): void };

const ROUNDS = 3;

/**
 * Set up, and put the memory in order: the last thing that a component does when it is built.
 *
 * A run copies each page of the snapshot's memory that it writes to. What the engine makes lazily (its built-in functions) is
 * made here, by running a sample program. And it collects garbage once its memory has grown by half since the last time: a
 * first collection now keeps a run from beginning with one, which would write to every object.
 */
export function prepare(): void {
  install();
  for (let round = 0; round < ROUNDS; round += 1) {
    new Program(warmUp).run({ n: 4, words: ["some"] });
  }
  __cqjs.runGc();
}
