/** Sets of tokens, which stay on the host: what a generation may sample besides its constraint. */

import type { Mask as Handle } from "tartlet:inferlet/constraints@0.1.0";
import type { Model as ModelHandle } from "tartlet:inferlet/models@0.1.0";

import * as checks from "./checks";
import { SHARED } from "./copying";
import { invalid } from "./errors";
import { call, dispose } from "./host_call";
import type { Model } from "./model";
import { vocabularyOf } from "./vocabulary";
import { constraints, models } from "./wit";

/**
 * A set of tokens of a model. Nothing changes it: `and`, `or`, `minus` and `not` make others, on the host.
 *
 * Attach it to a generation with the option `mask`: only its tokens are sampled, so have `model.eosTokens` in it if the
 * model may end the text.
 */
export class Mask {
  readonly [SHARED] = true;

  /** For the SDK alone. */
  constructor(readonly handle: Handle) {}

  /** Make a mask of some tokens, by default of the host's default model's. */
  static of(tokens: Iterable<number>, model?: Model): Mask {
    const ids = checks.tokens(tokens, "tokens", "Mask.of");
    return new Mask(call("Mask.of", () => constraints.Mask.tokens(modelHandle(model), ids)));
  }

  /** Make a mask of all tokens. */
  static all(model?: Model): Mask {
    return new Mask(call("Mask.all", () => constraints.Mask.all(modelHandle(model))));
  }

  /**
   * Make a mask of the tokens whose bytes the predicate is true of; special tokens have those of their names.
   *
   * The first call for a model asks the host for all of its tokens.
   */
  static where(predicate: (bytes: Uint8Array) => unknown, model?: Model): Mask {
    const handle = modelHandle(model);
    const ids: number[] = [];
    vocabularyOf(handle).forEach((bytes, token) => {
      if (predicate(bytes)) {
        ids.push(token);
      }
    });
    return new Mask(call("Mask.where", () => constraints.Mask.tokens(handle, ids)));
  }

  /** Number of tokens. */
  get size(): number {
    return this.handle.count();
  }

  /** Whether it has a token. */
  has(token: number): boolean {
    const id = checks.whole(token, "token", "Mask.has");
    return call("Mask.has", () => this.handle.allows(id));
  }

  /** The tokens that this and all of these masks have. */
  and(...others: Mask[]): Mask {
    const ids = maskIds(others, "Mask.and");
    return new Mask(call("Mask.and", () => this.handle.intersection(ids)));
  }

  /** The tokens that this or any of these masks has. */
  or(...others: Mask[]): Mask {
    const ids = maskIds(others, "Mask.or");
    return new Mask(call("Mask.or", () => this.handle.union(ids)));
  }

  /** The tokens that this one does not have. */
  not(): Mask {
    return new Mask(call("Mask.not", () => this.handle.complement()));
  }

  /** The tokens that this one has and the other has not. */
  minus(other: Mask): Mask {
    maskId(other, "Mask.minus");
    using rest = other.not();
    return this.and(rest);
  }

  /** Make a mask of those of these tokens that are in this one. */
  restrict(tokens: Iterable<number>): Mask {
    const ids = checks.tokens(tokens, "tokens", "Mask.restrict");
    return new Mask(call("Mask.restrict", () => this.handle.restrict(ids)));
  }

  /** Free it now rather than when nothing refers to it any more. */
  [Symbol.dispose](): void {
    dispose(this.handle);
  }
}

/** The number that the host knows it by; null for none. Throws `invalid-argument` for anything else. */
export function maskId(mask: Mask | null | undefined, name: string): number | null {
  return mask === undefined || mask === null ? null : maskIds([mask], name)[0]!;
}

/** The handle of a model, by default the host's default. */
export function modelHandle(model: Model | undefined): ModelHandle {
  return model === undefined ? call("getModel", () => models.Model.open(null)) : model.handle;
}

function maskIds(masks: Mask[], name: string): number[] {
  return masks.map((mask) => {
    if (!(mask instanceof Mask)) {
      throw invalid(name, `mask must be a Mask, not ${checks.kindOf(mask)}`, "Make one with Mask.of(tokens).");
    }
    return mask.handle.id();
  });
}
