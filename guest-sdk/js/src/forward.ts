/** Forward passes: what the model says of tokens after a context's last one, before any of them is kept. */

import type { Findings, Pass as Handle, Request, Row as HostRow } from "tartlet:inferlet/forward@0.1.0";

import { waitFor } from "./async/loop";
import * as checks from "./checks";
import type { Context } from "./context";
import { type TokenLogprob, tokenLogprob } from "./draft";
import { invalid } from "./errors";
import { call, dispose } from "./host_call";
import { type Sampler, samplerOf } from "./sampler";
import { forward } from "./wit";

/** As a row or a parent: the context's last token. */
export const LAST = -1;

/** What to ask about the token that comes after a row. */
export interface Ask {
  /** The index of a token of the pass, or -1, the default, for the context's last token. */
  row?: number;
  /** Sample a token so. */
  sample?: Sampler;
  /** Which number of the sampler's seed to use: a generation's first token has 0, the next 1, ... */
  sampleIndex?: number;
  /** So many most likely tokens. */
  top?: number;
  /** The log-probabilities of these tokens. */
  given?: Iterable<number>;
  /** The entropy of the distribution. */
  entropy?: boolean;
}

/** What `Context.forward` takes besides the tokens. */
export interface ForwardOptions {
  /**
   * For each token the index of the one that it follows, -1 for the context's last: it sees no others. By default each
   * token follows the one before. A tree has at most 256 tokens.
   */
  parents?: Iterable<number>;
  /** Where each token stands: after the one that it follows; what lies between is left out. */
  positions?: Iterable<number>;
  /** What is wanted of the tokens that come after some of these, or after the context's last. */
  ask?: Iterable<Ask>;
  /** Give the log-probability of each token, after what it follows. */
  logprobs?: boolean;
}

/** The answer to an `Ask`. Log-probabilities and entropy are in nats. */
export interface Row {
  readonly sampled: TokenLogprob | null;
  /** The most likely tokens, most likely first. */
  readonly top: readonly TokenLogprob[];
  /** The log-probability of each token given. */
  readonly given: readonly number[];
  readonly entropy: number | null;
}

const OPTIONS = ["parents", "positions", "ask", "logprobs"] as const;
const ASK = ["row", "sample", "sampleIndex", "top", "given", "entropy"] as const;

/** A forward pass that has been computed: what it found. Commit a path of it, or discard it; `using` discards it. */
export class Pass {
  /** The log-probability of each token after what it follows, if asked for. */
  readonly logprobs: readonly number[];
  /** The answers, in the order of what was asked. */
  readonly rows: readonly Row[];
  #handle: Handle | null;

  /** For the SDK alone. */
  constructor(handle: Handle, found: Findings) {
    this.#handle = handle;
    this.logprobs = found.logProbabilities;
    this.rows = found.rows.map(rowOf);
  }

  /**
   * Append the tokens of a path, by their indexes in the pass, to the context; `[]` keeps nothing.
   *
   * The first follows the context's last token, each other the one before it. Throws `invalid-argument` for another path,
   * and the pass can still be committed.
   */
  commit(path: Iterable<number>): void {
    const name = "Pass.commit";
    const handle = this.#handle;
    if (handle === null) {
      throw invalid(name, "the pass was committed or discarded before");
    }
    const rows = rowsOf(path, "a row of the path", name, 0);
    call(name, () => handle.commit(rows));
    this.#drop();
  }

  /** Forget the pass. No effect if it was committed. */
  discard(): void {
    this.#handle?.discard();
    this.#drop();
  }

  [Symbol.dispose](): void {
    this.discard();
  }

  #drop(): void {
    dispose(this.#handle);
    this.#handle = null;
  }
}

/** Let the host compute a pass, and read what it found: `Context.forward`, or for the call `name`. */
export async function compute(
  context: Context,
  tokens: Iterable<number>,
  options: ForwardOptions | undefined,
  name: string,
): Promise<Pass> {
  const { parents, positions, ask = [], logprobs } = checks.options(options, OPTIONS, name);
  if (typeof ask !== "object" || typeof ask[Symbol.iterator] !== "function") {
    throw invalid(name, `ask must be several, not ${checks.kindOf(ask)}`, "Write ask: [{ top: 5 }].");
  }
  const record = {
    parents: parents === undefined ? null : rowsOf(parents, "a parent", name, LAST),
    positions: positions === undefined ? null : checks.tokens(positions, "positions", name),
    logProbabilities: Boolean(logprobs),
    requests: Array.from(ask, (each) => requestOf(each, name)),
  };
  const ids = checks.tokens(tokens, "tokens", name);
  const contextHandle = context.handleFor(name.split(".")[1]!);
  const handle = call(name, () => forward.forward(contextHandle, ids, record));
  try {
    await waitFor(handle.ready());
    return new Pass(
      handle,
      call(name, () => handle.read()),
    );
  } catch (error) {
    dispose(handle);
    throw error;
  }
}

function requestOf(ask: Ask, name: string): Request {
  const given = checks.options(ask, ASK, name);
  return {
    row: checks.asU32(checks.whole(given.row ?? LAST, "row", name, LAST, checks.U32 - 1) + 1),
    sampling: given.sample === undefined ? null : samplerOf(given.sample, name).record,
    sampleIndex: checks.whole(given.sampleIndex ?? 0, "sampleIndex", name),
    top: checks.whole(given.top ?? 0, "top", name),
    given: checks.tokens(given.given ?? [], "given", name),
    entropy: Boolean(given.entropy),
    logits: false,
  };
}

function rowOf(row: HostRow): Row {
  return {
    sampled: row.sampled === null ? null : tokenLogprob(row.sampled),
    top: row.top.map(tokenLogprob),
    given: row.given,
    entropy: row.entropy,
  };
}

/** The contract's numbers of rows: one more than the index of a token. */
function rowsOf(indexes: Iterable<number>, what: string, name: string, low: number): number[] {
  if (typeof (indexes as Iterable<number> | null)?.[Symbol.iterator] !== "function") {
    throw invalid(name, `${what.replace(/^an? /, "")}s must be several, not ${checks.kindOf(indexes)}`);
  }
  return Array.from(indexes, (each) => checks.asU32(checks.whole(each, what, name, low, checks.U32 - 1) + 1));
}
