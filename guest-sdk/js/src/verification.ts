/** Drafts of a program's own, checked by the model in one pass. */

import * as checks from "./checks";
import type { Context } from "./context";
import { compute } from "./forward";
import { type Sampler, samplerOf } from "./sampler";

const CALL = "Context.verify";
const MOST_VERIFIED = 63; // tokens of a draft: a pass samples 64 times at most

/** Append what the sampler chooses, as long as that is the draft, and one token more: `Context.verify`. */
export async function verify(
  context: Context,
  draft: Iterable<number>,
  options: { sampler?: Sampler; sampleIndex?: number } | undefined,
): Promise<number[]> {
  const { sampler, sampleIndex = 0 } = checks.options(options, ["sampler", "sampleIndex"], CALL);
  const guessed = checks.tokens(draft, "draft", CALL);
  checks.whole(guessed.length, "the number of tokens in draft", CALL, 0, MOST_VERIFIED);
  checks.whole(sampleIndex, "sampleIndex", CALL, 0, checks.U32 - MOST_VERIFIED);
  const sample = samplerOf(sampler, CALL);
  const ask = Array.from({ length: guessed.length + 1 }, (_, k) => ({ row: k - 1, sample, sampleIndex: sampleIndex + k }));
  const tokens: number[] = [];
  using found = await compute(context, guessed, { ask }, CALL);
  for (const [k, row] of found.rows.entries()) {
    const { token } = row.sampled!;
    tokens.push(token);
    if (token !== guessed[k]) {
      break;
    }
  }
  found.commit(Array.from({ length: tokens.length - 1 }, (_, k) => k));
  context.fillTokens(tokens.slice(-1));
  return tokens;
}
