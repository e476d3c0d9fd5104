/** How the next token is chosen. */

import type { Sampling } from "tartlet:inferlet/generation@0.1.0";

import * as checks from "./checks";
import { invalid } from "./errors";

const CALL = "Sampler";

/** What every kind of sampler takes as well. */
export interface SamplerExtras {
  /**
   * The same seed gives the same tokens, whatever else runs. Without one, the run draws it. At most
   * `Number.MAX_SAFE_INTEGER`.
   */
  seed?: number;
  /** Divides (or multiplies, if negative) the logits of tokens that the context holds; 1 for none. */
  repetitionPenalty?: number;
  /** Subtracted from the logits of tokens generated so far. */
  presencePenalty?: number;
  /** Subtracted once for each time that a token was generated so far. */
  frequencyPenalty?: number;
  /** Added to the logits of single tokens. */
  logitBias?: Map<number, number> | Record<number, number>;
}

/** A sampler's numbers. They apply in this order: penalties and bias, temperature, top-k, top-p, min-p. */
export interface SamplerSettings extends SamplerExtras {
  /** 0 takes the most likely token, whatever the other fields say. */
  temperature?: number;
  /** Only the k most likely tokens; 0 for all. */
  topK?: number;
  /** Only the most likely tokens that together have this probability; 1 for all. */
  topP?: number;
  /** Only tokens at least this fraction as likely as the most likely one; 0 for all. */
  minP?: number;
}

const NAMES = [
  "temperature",
  "topK",
  "topP",
  "minP",
  "seed",
  "repetitionPenalty",
  "presencePenalty",
  "frequencyPenalty",
  "logitBias",
] as const;

/**
 * How the next token is chosen. Make one with `greedy`, `temperature`, `topP`, `topK` or `minP`.
 *
 * All of them take further settings by name, such as `seed` or `repetitionPenalty`; `with` gives a changed copy.
 * Throws `invalid-argument` for a setting out of its range.
 */
export class Sampler {
  readonly settings: Readonly<SamplerSettings>;
  /** The contract's record. */
  readonly record: Sampling;

  constructor(settings: SamplerSettings = {}) {
    this.settings = { ...checks.options(settings, NAMES, CALL) };
    this.record = recordOf(this.settings);
  }

  /** Always take the most likely token. */
  static greedy(extras?: SamplerExtras): Sampler {
    return new Sampler({ ...extras, temperature: 0 });
  }

  /** Draw from all tokens; below 1 likely ones become likelier, above 1 less so. */
  static temperature(temperature: number, extras?: SamplerExtras): Sampler {
    return new Sampler({ ...extras, temperature });
  }

  /** Draw from the most likely tokens that together have probability `p` (nucleus sampling). */
  static topP(temperature: number, p: number, extras?: SamplerExtras): Sampler {
    return new Sampler({ ...extras, temperature, topP: p });
  }

  /** Draw from the `k` most likely tokens. */
  static topK(k: number, temperature = 1, extras?: SamplerExtras): Sampler {
    return new Sampler({ ...extras, temperature, topK: k });
  }

  /** Draw from the tokens that are at least `p` times as likely as the most likely one. */
  static minP(p: number, temperature = 1, extras?: SamplerExtras): Sampler {
    return new Sampler({ ...extras, temperature, minP: p });
  }

  /** Change some settings in a copy: `Sampler.topK(40).with({ seed: 7 })`. */
  with(changes: SamplerSettings): Sampler {
    return new Sampler({ ...this.settings, ...changes });
  }
}

/** `given`, by default greedy. Throws `invalid-argument` for anything else. */
export function samplerOf(given: Sampler | undefined, call: string): Sampler {
  if (given === undefined) {
    return Sampler.greedy();
  }
  if (!(given instanceof Sampler)) {
    const hint = "Make one with Sampler.greedy(), Sampler.topP(temperature, p), ...";
    throw invalid(call, `sampler must be a Sampler, not ${checks.kindOf(given)}`, hint);
  }
  return given;
}

/** The pairs of a map or an object of numbers by token, checked. */
export function biases(given: Map<number, number> | Record<number, number>, name: string, call: string): [number, number][] {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw invalid(call, `${name} must be a Map or an object of numbers by token, not ${checks.kindOf(given)}`);
  }
  const pairs =
    given instanceof Map ? Array.from(given) : Object.entries(given).map(([token, bias]) => [Number(token), bias] as const);
  return pairs.map(([token, bias]) => [
    checks.whole(token, `a token of ${name}`, call),
    checks.number(bias, `${name}[${token}]`, call),
  ]);
}

function recordOf(settings: SamplerSettings): Sampling {
  const { temperature = 1, topK = 0, topP = 1, minP = 0, repetitionPenalty = 1, seed } = settings;
  if (checks.number(topP, "topP", CALL, 0, 1) === 0) {
    throw invalid(CALL, "topP must be greater than 0");
  }
  if (checks.number(repetitionPenalty, "repetitionPenalty", CALL, 0) === 0) {
    throw invalid(CALL, "repetitionPenalty must be greater than 0; 1 is none");
  }
  return {
    temperature: checks.number(temperature, "temperature", CALL, 0),
    topK: checks.whole(topK, "topK", CALL),
    topP,
    minP: checks.number(minP, "minP", CALL, 0, 1),
    repetitionPenalty,
    presencePenalty: checks.number(settings.presencePenalty ?? 0, "presencePenalty", CALL),
    frequencyPenalty: checks.number(settings.frequencyPenalty ?? 0, "frequencyPenalty", CALL),
    logitBias: biases(settings.logitBias ?? {}, "logitBias", CALL),
    seed: seed === undefined ? null : checks.whole(seed, "seed", CALL, 0, Number.MAX_SAFE_INTEGER),
  };
}
