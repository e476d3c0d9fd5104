/** What a program answers before a step: the checked form of what `Steps.next` is given. */

import type { Answer, Splice as HostSplice } from "tartlet:inferlet/stepping@0.1.0";

import * as checks from "./checks";
import { invalid } from "./errors";
import { type Mask, maskId } from "./mask";
import { biases } from "./sampler";

/**
 * A change of what a step appends: `backtrack` tokens are dropped from the end, then `tokens` appended.
 *
 * In a step that samples, `backtrack` counts the sampled token, too: 0, the default, keeps it, 1 replaces it, 2 also drops
 * the one before it.
 */
export interface Splice {
  /** Appended as they are; nobody samples them. */
  tokens?: Iterable<number>;
  /** Tokens to drop. */
  backtrack?: number;
  /** Holds if one of these is sampled; none: whatever is sampled. */
  whenSampled?: Iterable<number>;
}

/** What `Steps.next` takes. All of it holds for this step alone. */
export interface AnswerOptions {
  /** Only these tokens. */
  allow?: Iterable<number>;
  /** Only tokens in this mask. Everything that restricts holds together. */
  mask?: Mask;
  /** Added to the logits of single tokens. */
  bias?: Map<number, number> | Record<number, number>;
  /** Added to the logits of all tokens of a mask; up to four masks. */
  boost?: Map<Mask, number>;
  /** Instead of the sampler's. */
  temperature?: number;
  /** The first whose condition holds is carried out. */
  splices?: Iterable<Splice>;
}

export const NEXT = "Steps.next";

const NAMES = ["allow", "mask", "bias", "boost", "temperature", "splices"] as const;
const PLAIN: Answer = { sample: true, allow: null, mask: null, bias: [], boosts: [], temperature: null, splices: [] };

/** The contract's record of what `Steps.next` is given. Throws `invalid-argument`. */
export function answerOf(given: AnswerOptions | undefined): Answer {
  if (given === undefined) {
    return PLAIN;
  }
  const { allow, mask, bias, boost, temperature, splices } = checks.options(given, NAMES, NEXT);
  return {
    sample: true,
    allow: allow === undefined ? null : checks.tokens(allow, "allow", NEXT),
    mask: maskId(mask, NEXT),
    bias: bias === undefined ? [] : biases(bias, "bias", NEXT),
    boosts: boost === undefined ? [] : boosts(boost),
    temperature: temperature === undefined ? null : checks.number(temperature, "temperature", NEXT, 0),
    splices: splices === undefined ? [] : splicesOf(splices, NEXT),
  };
}

/** The answer of a step that only appends and drops. */
export function forcing(tokens: number[], backtrack: number): Answer {
  const splices = tokens.length > 0 || backtrack > 0 ? [{ whenSampled: [], backtrack, tokens }] : [];
  return { ...PLAIN, sample: false, splices };
}

/** The contract's records of splices, which those of a controller are as well. */
export function splicesOf(splices: Iterable<Splice>, name: string): HostSplice[] {
  if (typeof splices !== "object" || typeof splices?.[Symbol.iterator] !== "function") {
    throw invalid(name, `splices must be several, not ${checks.kindOf(splices)}`, "Write splices: [splice].");
  }
  return Array.from(splices, (splice) => {
    const { tokens, backtrack, whenSampled } = checks.options(splice, ["tokens", "backtrack", "whenSampled"], name);
    return {
      whenSampled: checks.tokens(whenSampled ?? [], "whenSampled", name),
      backtrack: checks.whole(backtrack ?? 0, "backtrack", name),
      tokens: checks.tokens(tokens ?? [], "tokens of a splice", name),
    };
  });
}

function boosts(boost: Map<Mask, number>): [number, number][] {
  if (!(boost instanceof Map)) {
    throw invalid(NEXT, `boost must be a Map of numbers by Mask, not ${checks.kindOf(boost)}`);
  }
  return Array.from(boost, ([mask, amount]) => {
    const id = maskId(mask, NEXT);
    if (id === null) {
      throw invalid(NEXT, "a mask of boost is missing");
    }
    return [id, checks.number(amount, "an amount of boost", NEXT)];
  });
}
