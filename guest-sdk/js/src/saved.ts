/** Saved contexts: those of the tenant, by name. */

import type { SavedContext as HostSavedContext } from "tartlet:inferlet/contexts@0.1.0";

import { waitFor } from "./async/loop";
import * as checks from "./checks";
import { Context } from "./context";
import { call, dispose } from "./host_call";
import { modelHandle } from "./mask";
import type { Model } from "./model";
import { contexts } from "./wit";

/** What there is to know of a saved context. */
export interface SavedContext {
  /** What `openContext` takes. */
  readonly name: string;
  /** The name of the model that it was saved with. */
  readonly model: string;
  /** The name of the adapter that it was made with. */
  readonly adapter: string | null;
  /** Number of tokens. */
  readonly tokens: number;
  /** What it takes of the tenant's quota. */
  readonly bytes: number;
  /** Milliseconds for which it is still kept; null: until it is deleted. */
  readonly expiresInMs: number | null;
}

const NS_PER_MS = 1e6;

/**
 * Open a saved context: tokens, chat and all that was computed. Each opening gives a context of its own.
 *
 * Rejects with `not-found` if there is none by that name, or its file is damaged, and with `unsupported` if it was saved
 * with another model, or with an adapter that is not there or is another one now.
 */
export async function openContext(name: string, options?: { model?: Model; signal?: AbortSignal }): Promise<Context> {
  const called = "openContext";
  const { model, signal } = checks.options(options, ["model", "signal"], called);
  const given = checks.text(name, "name", called);
  const handle = modelHandle(model);
  const opening = call(called, () => contexts.Context.open(handle, given));
  try {
    await waitFor(opening.ready(), signal);
    return new Context(
      call(called, () => opening.take()),
      handle,
    );
  } finally {
    dispose(opening);
  }
}

/** The tenant's saved contexts, by name. */
export function savedContexts(): SavedContext[] {
  return call("savedContexts", () => contexts.listSaved()).map(savedContext);
}

/** Delete a saved context. Throws `not-found`. Contexts that were opened from it stay as they are. */
export function deleteContext(name: string): void {
  const given = checks.text(name, "name", "deleteContext");
  call("deleteContext", () => contexts.deleteSaved(given));
}

function savedContext({ expiresInNs, ...facts }: HostSavedContext): SavedContext {
  return { ...facts, expiresInMs: expiresInNs === null ? null : expiresInNs / NS_PER_MS };
}
