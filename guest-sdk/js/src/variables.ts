/** The run's variables: texts by name, which all that belongs to the run shares, and the client that launched it hears of. */

import type { Variable as HostVariable } from "tartlet:inferlet/store@0.1.0";

import { finish } from "./async/loop";
import * as checks from "./checks";
import { call } from "./host_call";
import { store } from "./wit";

/** A variable as it was when it was read. */
export interface Variable {
  readonly value: string;
  /** How many times it has been written: 1 after the first time. 0: it does not exist. */
  readonly version: number;
}

/** What became of a compare-and-swap. */
export interface Swap {
  /** Whether the value was written. */
  readonly written: boolean;
  /** What the variable holds now: what was written, or what was found instead. */
  readonly now: Variable;
}

const MOST = Number.MAX_SAFE_INTEGER;

/** The variable of that name, if there is one. */
export function get(name: string): Variable | null {
  return store.getVariable(checks.text(name, "name", "variables.get"));
}

/** Write a variable; its new version. Throws `quota-exceeded` for more than the run may keep. */
export function set(name: string, value: string): number {
  const called = "variables.set";
  const [at, text] = [checks.text(name, "name", called), checks.text(value, "value", called)];
  return call(called, () => store.setVariable(at, text));
}

/** Add to the end of a variable, which is empty if it does not exist; its new version. Throws as `set`. */
export function append(name: string, value: string): number {
  const called = "variables.append";
  const [at, text] = [checks.text(name, "name", called), checks.text(value, "value", called)];
  return call(called, () => store.appendVariable(at, text));
}

/** Write a variable if it still has that version; 0 if it does not exist yet. Throws as `set`. */
export function compareAndSwap(name: string, value: string, version: number): Swap {
  const called = "variables.compareAndSwap";
  const [at, text] = [checks.text(name, "name", called), checks.text(value, "value", called)];
  const given = checks.whole(version, "version", called, 0, MOST);
  return call(called, () => store.compareAndSwapVariable(at, text, given));
}

/** The version of each variable, by name, in the order in which they were first written. */
export function versions(): Map<string, number> {
  return new Map(store.listVariables().map((each) => [each.name, each.version]));
}

/**
 * Wait until the variable's version is above that one, and read it. By default until it exists.
 *
 * Rejects with `deadlock`, at once, if everything in the run waits for such changes: nobody is left to make them.
 */
export async function wait(name: string, above = 0, options?: { signal?: AbortSignal }): Promise<Variable> {
  const called = "variables.wait";
  const { signal } = checks.options(options, ["signal"], called);
  const at = checks.text(name, "name", called);
  const version = checks.whole(above, "above", called, 0, MOST);
  await finish(
    call(called, () => store.variableAbove(at, version)),
    called,
    signal,
  );
  return store.getVariable(at) as HostVariable; // it has a version
}
