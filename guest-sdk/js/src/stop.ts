/**
 * When a generation stops. Conditions compose: `maxTokens(64).or(stopStrings("END"))` stops at whichever comes first.
 *
 * The model's own eos tokens and the context length always stop a generation; `ignoreEos` lifts the former.
 */

import type { StopConditions } from "tartlet:inferlet/generation@0.1.0";

import * as checks from "./checks";
import { invalid } from "./errors";

/** Reasons to stop; the first that applies does. */
export class StopCondition {
  /** For the SDK alone: use the functions below. */
  constructor(readonly record: Readonly<StopConditions>) {}

  /** Stop for any reason of either. */
  or(other: StopCondition): StopCondition {
    if (!(other instanceof StopCondition)) {
      throw invalid("StopCondition.or", `the other must be a stop condition, not ${checks.kindOf(other)}`);
    }
    const a = this.record;
    const b = other.record;
    const lengths = [a.maxTokens, b.maxTokens].filter((each) => each !== null).map((each) => each >>> 0);
    return new StopCondition({
      maxTokens: lengths.length === 0 ? null : checks.asU32(Math.min(...lengths)),
      tokens: Array.from(new Set([...a.tokens, ...b.tokens])),
      strings: Array.from(new Set([...a.strings, ...b.strings])),
      ignoreEos: a.ignoreEos || b.ignoreEos,
    });
  }
}

const NOTHING: StopConditions = { maxTokens: null, tokens: [], strings: [], ignoreEos: false };

/** Stop after that many generated tokens. */
export function maxTokens(count: number): StopCondition {
  return new StopCondition({ ...NOTHING, maxTokens: checks.whole(count, "maxTokens", "maxTokens", 1) });
}

/** Stop when the text contains any of these, even when it spans several tokens. The text ends before it. */
export function stopStrings(...strings: string[]): StopCondition {
  for (const each of strings) {
    if (checks.text(each, "a stop string", "stopStrings") === "") {
      throw invalid("stopStrings", "a stop string must not be empty");
    }
  }
  return new StopCondition({ ...NOTHING, strings });
}

/** Stop after any of these tokens. */
export function stopTokens(...tokens: number[]): StopCondition {
  return new StopCondition({ ...NOTHING, tokens: checks.tokens(tokens, "stop tokens", "stopTokens") });
}

/** Stop when the output ends with any of these strings or tokens, such as `...model.eosTokens`. */
export function endsWithAny(...endings: (string | number)[]): StopCondition {
  const strings = endings.filter((each) => typeof each === "string");
  const tokens = endings.filter((each) => typeof each !== "string");
  return stopStrings(...strings).or(stopTokens(...tokens));
}

/** Go on after the model's own eos tokens. */
export function ignoreEos(): StopCondition {
  return new StopCondition({ ...NOTHING, ignoreEos: true });
}

/** What is asked for by the options `stop` and `maxTokens` together. */
export function stopOf(stop: StopCondition | undefined, most: number | undefined, call: string): StopCondition {
  if (stop !== undefined && !(stop instanceof StopCondition)) {
    const hint = 'Make one with maxTokens(n), stopStrings("..."), stopTokens(id), and combine them with .or(...).';
    throw invalid(call, `stop must be a stop condition, not ${checks.kindOf(stop)}`, hint);
  }
  const given = stop ?? new StopCondition(NOTHING);
  if (most === undefined) {
    return given;
  }
  return given.or(new StopCondition({ ...NOTHING, maxTokens: checks.whole(most, "maxTokens", call, 1) }));
}
