/** A component made of one controller (the world `controller`), as `built_app` is made of an inferlet. */

import type { Decision, Outcome, StartAnswer } from "tartlet:inferlet/steering@0.1.0";
import bundle from "tartlet-program";

import { prepare } from "./prepare";
import { Program } from "./program";

const PROGRAM = new Program(bundle);

/** Begin. */
export function start(config: string, prompt: number[]): StartAnswer {
  return PROGRAM.start(config, prompt);
}

/** Decide. */
export function step(outcomes: Outcome[]): Decision[] {
  return PROGRAM.step(outcomes);
}

prepare();
