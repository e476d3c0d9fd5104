/** The runner: one component for every program that is given as source (the world `runner`). */

import type { Decision, Outcome, StartAnswer } from "tartlet:inferlet/steering@0.1.0";
import { program as given } from "tartlet:inferlet/source@0.1.0";

import { prepare } from "./prepare";
import { type Bundle, Program } from "./program";

interface Given {
  files: Record<string, string>;
  input: unknown;
}

let steered: Program | null = null;

/** Run the program that the host gives, with the input that comes with it: a spare waits for both in here. */
export function run(_: string): string {
  const program = JSON.parse(given()) as Given;
  return new Program(bundleOf(program)).run(program.input);
}

/** Begin as a controller, of the program that the host gives. */
export function start(config: string, prompt: number[]): StartAnswer {
  steered = new Program(bundleOf(JSON.parse(given()) as Given));
  return steered.start(config, prompt);
}

/** Decide, as a controller. */
export function step(outcomes: Outcome[]): Decision[] {
  return steered!.step(outcomes);
}

/** Check that the engine can compile the program that the host gives, which is bundled already. */
export function compile(): string {
  const program = JSON.parse(given()) as Given;
  try {
    new Program(bundleOf(program));
  } catch (error) {
    throw String(error);
  }
  return JSON.stringify(program.files);
}

function bundleOf({ files }: Given): Bundle {
  return { code: files["program.js"]!, map: files["program.js.map"]! };
}

prepare();
