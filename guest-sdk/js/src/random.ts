/** `Math.random`, from the run's seed: the engine's own gives every run the same numbers. */

import { runs } from "./wit";

let state: [number, number, number, number] | null = null;

/** A number from 0 to before 1. */
export function random(): number {
  state ??= seeded(runs.info().seed);
  return (next(state) * 2 ** 21 + (next(state) >>> 11)) / 2 ** 53;
}

/** The four words that a seed gives, by SplitMix32. */
function seeded(seed: number): [number, number, number, number] {
  let word = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
  const draw = (): number => {
    word = (word + 0x9e3779b9) | 0;
    let mixed = word ^ (word >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
  return [draw(), draw(), draw(), draw()];
}

/** The next 32 bits, by xoshiro128**. */
function next(words: [number, number, number, number]): number {
  const result = Math.imul(rotated(Math.imul(words[1], 5), 7), 9) >>> 0;
  const shifted = words[1] << 9;
  words[2] ^= words[0];
  words[3] ^= words[1];
  words[1] ^= words[2];
  words[0] ^= words[3];
  words[2] ^= shifted;
  words[3] = rotated(words[3], 11);
  return result;
}

function rotated(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
