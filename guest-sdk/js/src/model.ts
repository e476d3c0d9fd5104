/** The models that the host serves, and their tokenizers. */

import type { Model as Handle, ModelInfo as HostModelInfo } from "tartlet:inferlet/models@0.1.0";

import * as checks from "./checks";
import { Context } from "./context";
import { SHARED } from "./copying";
import { call } from "./host_call";
import { vocabularyOf } from "./vocabulary";
import { contexts, models } from "./wit";

/** Facts about a model. */
export type ModelInfo = Readonly<HostModelInfo>;

/** A model that contexts can be made of. Open one with `getModel()`. */
export class Model {
  readonly [SHARED] = true;
  #info: ModelInfo | null = null;

  /** For the SDK alone. */
  constructor(readonly handle: Handle) {}

  /** The model's facts. */
  get info(): ModelInfo {
    this.#info ??= this.handle.info();
    return this.#info;
  }

  /** The name it is opened by. */
  get name(): string {
    return this.info.name;
  }

  /** The greatest length of a context, in tokens. */
  get contextLength(): number {
    return this.info.contextLength;
  }

  /** The tokens that end a turn or a text. */
  get eosTokens(): readonly number[] {
    return this.info.eosTokens;
  }

  /** The names of the LoRA adapters that contexts can be made with. */
  get adapters(): readonly string[] {
    return this.info.adapters;
  }

  /**
   * Make an empty context.
   *
   * @param options.adapter One of `adapters`: what the context and its forks compute is as if it were merged into the model.
   */
  context(options?: { adapter?: string }): Context {
    const name = "Model.context";
    const { adapter } = checks.options(options, ["adapter"], name);
    const given = adapter === undefined ? null : checks.text(adapter, "adapter", name);
    return new Context(
      call(name, () => contexts.Context.create(this.handle, given)),
      this.handle,
    );
  }

  /** Token ids of a text. Special tokens that are written out in it become their ids. */
  tokenize(text: string): number[] {
    const given = checks.text(text, "text", "Model.tokenize");
    return call("Model.tokenize", () => this.handle.tokenize(given));
  }

  /** The text of token ids, special tokens included. Bytes that are not UTF-8 become U+FFFD. */
  detokenize(tokens: Iterable<number>): string {
    const ids = checks.tokens(tokens, "tokens", "Model.detokenize");
    return call("Model.detokenize", () => this.handle.detokenize(ids));
  }

  /** The bytes of one token, which need not be whole characters. */
  tokenBytes(token: number): Uint8Array {
    const id = checks.whole(token, "token", "Model.tokenBytes");
    return Uint8Array.from(call("Model.tokenBytes", () => this.handle.tokenBytes(id)));
  }

  /** The bytes of every token, by id; special tokens have those of their names. Asked for once, by one call. */
  get vocabulary(): Uint8Array[] {
    return vocabularyOf(this.handle).slice();
  }
}

/** Open the model of that name, by default the host's default. Throws `not-found`, and names those that there are. */
export function getModel(name?: string): Model {
  const given = name === undefined ? null : checks.text(name, "name", "getModel");
  return new Model(call("getModel", () => models.Model.open(given)));
}

/** The facts of every model that the run may open, the default first. */
export function availableModels(): ModelInfo[] {
  return models.listModels();
}
