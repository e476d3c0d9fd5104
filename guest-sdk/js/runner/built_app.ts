/** A component made of one inferlet (the world `inferlet`). The build puts the program into the module `tartlet-program`. */

import bundle from "tartlet-program";

import { prepare } from "./prepare";
import { Program } from "./program";

const PROGRAM = new Program(bundle);

/** Run the program. */
export function run(input: string): string {
  let given: unknown;
  try {
    given = JSON.parse(input);
  } catch (error) {
    throw `the input is no JSON: ${(error as Error).message}`;
  }
  return PROGRAM.run(given);
}

prepare();
