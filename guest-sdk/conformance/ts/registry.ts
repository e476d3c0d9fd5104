/** The cases of this program, by name. */

import type { Transcript } from "./transcript";

type Case = (t: Transcript) => void | Promise<void>;

export const CASES = new Map<string, Case>();

/** Give functions the names of cases in cases.toml. */
export function cases(named: Record<string, Case>): void {
  Object.entries(named).forEach(([name, each]) => CASES.set(name, each));
}
