/** How a generation guesses its next tokens, so that several come of one step. */

import type { Speculation as Record } from "tartlet:inferlet/generation@0.1.0";
import type { Model as ModelHandle } from "tartlet:inferlet/models@0.1.0";

import * as checks from "./checks";
import { call } from "./host_call";

/** How the next tokens are guessed. */
export interface SpeculationOptions {
  /** A text that is expected, at least in parts, or its tokens (at most 16,384). It is guessed from its beginning. */
  expected?: string | Iterable<number>;
  /** Tokens guessed for one step, at most: 1 to 32; by default 8. */
  maxDraft?: number;
  /** How many of the last tokens must have stood there: 1 to 8; by default 3. */
  ngram?: number;
}

const CALL = "Speculation";
const MOST_DRAFTED = 32;
const LONGEST_NGRAM = 8;

/**
 * Guesses of the next tokens, for `context.generate({ speculation })`. What is generated does not depend on them.
 *
 * Where the context's last `ngram` tokens stood before, in the expected text or in the context itself, what followed them
 * there is guessed to follow now. It makes texts that copy faster: edits, quotes, code, loops.
 */
export class Speculation {
  readonly #expected: string | number[];
  readonly #maxDraft: number;
  readonly #ngram: number;

  constructor(options?: SpeculationOptions) {
    const { expected = [], maxDraft = 8, ngram = 3 } = checks.options(options, ["expected", "maxDraft", "ngram"], CALL);
    this.#maxDraft = checks.whole(maxDraft, "maxDraft", CALL, 1, MOST_DRAFTED);
    this.#ngram = checks.whole(ngram, "ngram", CALL, 1, LONGEST_NGRAM);
    this.#expected =
      typeof expected === "string" ? checks.text(expected, "expected", CALL) : checks.tokens(expected, "expected", CALL);
  }

  /** The contract's record, with an expected text in the model's tokens. */
  recordFor(model: ModelHandle): Record {
    const text = this.#expected;
    const expected = typeof text === "string" ? call("Context.generate", () => model.tokenize(text)) : text;
    return { maxDraft: this.#maxDraft, ngram: this.#ngram, expected };
  }
}
