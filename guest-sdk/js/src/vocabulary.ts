/** The bytes of all of a model's tokens, which are asked for once. */

import type { Model as Handle } from "tartlet:inferlet/models@0.1.0";

import { call } from "./host_call";

const TOKEN_END = "\u0100";

/** By model, of those that have been asked for theirs. */
const known = new Map<string, Uint8Array[]>();

/** The bytes of every token of a model, by id. Not the caller's to change. */
export function vocabularyOf(handle: Handle): Uint8Array[] {
  const info = handle.info();
  let vocabulary = known.get(info.name);
  if (vocabulary === undefined) {
    const text = call("Model.vocabulary", () => handle.vocabulary(0, info.vocabularySize));
    vocabulary = text.split(TOKEN_END).slice(0, -1).map(latin1);
    known.set(info.name, vocabulary);
  }
  return vocabulary;
}

function latin1(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k += 1) {
    bytes[k] = text.charCodeAt(k);
  }
  return bytes;
}
