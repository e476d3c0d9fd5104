/** How likely texts are after a context: the log-probabilities behind `Context.score` and `Context.logprobs`. */

import * as checks from "./checks";
import type { Context } from "./context";
import type { TokenLogprob } from "./draft";
import { invalid } from "./errors";
import { compute, LAST } from "./forward";
import { call } from "./host_call";

const MOST_BRANCHES = 256; // tokens of a pass that is a tree

/**
 * Texts as a tree that shares their beginnings.
 *
 * The last token of a text is no node of it: its probability is known before it is computed.
 */
class Branches {
  readonly tokens: number[] = [];
  readonly parents: number[] = [];
  /** By row and token: the row of that token. */
  readonly #children = new Map<string, number>();
  /** By row: tokens whose probability after it is wanted. */
  readonly #next = new Map<number, Set<number>>([[LAST, new Set()]]);

  /** Number of nodes that a text would add. */
  numNew(text: number[]): number {
    let row = LAST;
    let index = 0;
    while (index < text.length - 1 && this.#children.has(`${row} ${text[index]}`)) {
      row = this.#children.get(`${row} ${text[index]}`)!;
      index += 1;
    }
    return text.length - 1 - index;
  }

  /** Add a text of at least one token. */
  add(text: number[]): void {
    let row = LAST;
    for (const token of text.slice(0, -1)) {
      this.#next.get(row)!.add(token);
      const key = `${row} ${token}`;
      let child = this.#children.get(key);
      if (child === undefined) {
        child = this.tokens.length;
        this.#children.set(key, child);
        this.#next.set(child, new Set());
        this.tokens.push(token);
        this.parents.push(row);
      }
      row = child;
    }
    this.#next.get(row)!.add(text.at(-1)!);
  }

  /** Compute all for the call `name`, and keep nothing: log-probabilities by row and the token after it. */
  async logprobs(context: Context, name: string): Promise<Map<string, number>> {
    const asked = Array.from(this.#next, ([row, tokens]) => ({ row, given: Array.from(tokens) }));
    const found = new Map<string, number>();
    using pass = await compute(context, this.tokens, { parents: this.parents, ask: asked }, name);
    asked.forEach(({ row, given }, k) =>
      given.forEach((token, at) => found.set(`${row} ${token}`, pass.rows[k]!.given[at]!)),
    );
    return found;
  }

  /** The log-probability of a text that was added. */
  total(text: number[], logprobs: Map<string, number>): number {
    let row = LAST;
    let total = 0;
    for (const token of text) {
      const key = `${row} ${token}`;
      total += logprobs.get(key)!;
      row = this.#children.get(key) ?? LAST;
    }
    return total;
  }
}

/** The log-probability of each text: `Context.score`. */
export async function score(context: Context, options: Iterable<string>): Promise<number[]> {
  const name = "Context.score";
  if (typeof options === "string" || typeof (options as Iterable<string> | null)?.[Symbol.iterator] !== "function") {
    throw invalid(name, `options must be several texts, not ${checks.kindOf(options)}`, 'Write ["one", "two"].');
  }
  const texts = Array.from(options, (option) => tokensOf(context, option, "an option", name));
  const totals: number[] = [];
  while (totals.length < texts.length) {
    const branches = new Branches();
    const group: number[][] = [];
    for (const text of texts.slice(totals.length)) {
      if (branches.tokens.length + branches.numNew(text) > MOST_BRANCHES) {
        break;
      }
      branches.add(text);
      group.push(text);
    }
    if (group.length > 0) {
      const found = await branches.logprobs(context, name);
      totals.push(...group.map((text) => branches.total(text, found)));
    } else {
      const logprobs = await line(context, texts[totals.length]!, name); // a text that is a pass by itself
      totals.push(logprobs.reduce((sum, each) => sum + each, 0));
    }
  }
  return totals;
}

/** Each token of a text with its log-probability: `Context.logprobs`. */
export async function logprobs(context: Context, text: string): Promise<TokenLogprob[]> {
  const name = "Context.logprobs";
  const tokens = tokensOf(context, text, "text", name);
  const found = await line(context, tokens, name);
  return tokens.map((token, k) => ({ token, logprob: found[k]! }));
}

/** The log-probability of each token, if they all follow the context. Keeps nothing. */
async function line(context: Context, tokens: number[], name: string): Promise<number[]> {
  const last = { row: tokens.length - 2, given: tokens.slice(-1) }; // known before the last token is computed
  using found = await compute(context, tokens.slice(0, -1), { ask: [last], logprobs: true }, name);
  return [...found.logprobs, ...found.rows[0]!.given];
}

function tokensOf(context: Context, text: string, what: string, name: string): number[] {
  const given = checks.text(text, what, name);
  const tokens = call(name, () => context.modelHandle.tokenize(given));
  if (tokens.length === 0) {
    throw invalid(name, `${what} is empty`);
  }
  return tokens;
}
