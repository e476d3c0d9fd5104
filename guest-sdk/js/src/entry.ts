/** The function that a run calls: the default export of a program. */

import { kindOf } from "./checks";
import { TartletError } from "./errors";
import { type Fields, inputOf, type InputOf } from "./input";

/** An inferlet; made by `inferlet`. */
export class Inferlet {
  /** For the SDK alone. */
  constructor(
    readonly fields: Fields | null,
    readonly work: (input: any) => unknown,
  ) {}

  /** Begin it with the run's input. Throws `invalid-argument` for one that it does not take. */
  start(input: unknown): unknown {
    return this.work(this.fields === null ? (input ?? {}) : inputOf(this.fields, input));
  }
}

/**
 * Say what a run calls: `export default inferlet(async (input) => ...)`.
 *
 * The run's input is JSON, and so is its result. With fields, such as `{ n: input.integer(3) }`, the input is checked
 * before the function is called, and has their types.
 */
export function inferlet<I = any>(work: (input: I) => unknown): Inferlet;
export function inferlet<F extends Fields>(fields: F, work: (input: InputOf<F>) => unknown): Inferlet;
export function inferlet(...given: any[]): Inferlet {
  const work = given.at(-1);
  const fields = given.length > 1 ? given[0] : null;
  if (typeof work !== "function" || given.length > 2) {
    const hint = "Write inferlet(async (input) => ...), or inferlet({ n: input.integer() }, async ({ n }) => ...).";
    throw new TartletError("program", `inferlet takes a function, not ${kindOf(work)}`, { hint });
  }
  return new Inferlet(fields, work);
}
