/** Trees of forks. */

import type { Context } from "tartlet-sdk";

import { filled } from "./context_cases";
import { cases } from "./registry";

cases({
  async "trees.binary"(t) {
    async function grow(context: Context, depth: number): Promise<string[]> {
      if (depth === 0) {
        return [(await context.generate()).text];
      }
      const [left, right] = [context.fork(), context.fork()];
      left.fill("l");
      right.fill("r");
      return (await Promise.all([grow(left, depth - 1), grow(right, depth - 1)])).flat();
    }
    t.say("leaves", await grow(filled("root:"), 5));
  },

  async "trees.chain"(t) {
    let context = filled("0");
    for (let i = 1; i < 100; i += 1) {
      const child = context.fork();
      child.fill(String(i % 10));
      context.close();
      context = child;
    }
    const draft = await context.generate({ maxTokens: 5 });
    t.say("length", context.length, draft.text);
  },

  async "trees.parents-go-first"(t) {
    const parent = filled("0123456789abcdef".repeat(4));
    await parent.flush();
    const children = Array.from({ length: 8 }, () => parent.fork());
    parent.close();
    children[0]!.truncate(3);
    children[1]!.fill("!");
    const drafts = await Promise.all(children.map((child) => child.generate({ maxTokens: 2 })));
    t.say("cached", drafts.map((draft) => draft.usage.cachedTokens));
    t.say("lengths", children.map((child) => child.length));
    t.say("shared", drafts[2]!.usage.pages, drafts[2]!.usage.sharedPages);
  },

  async "trees.while-generating"(t) {
    const context = filled("endless");
    const running = context.stream({ chunkIntervalMs: 0 });
    await running.next();
    const child = context.fork();
    const same = String(child.tokens.slice(0, 7)) === String(context.tokens.slice(0, 7));
    t.say("has what is there", child.length > 7, same);
    running.cancel();
    for await (const _ of running) {
      continue;
    }
    child.truncate(7);
    t.say("its own", String(child.tokens) === String(context.tokens.slice(0, 7)));
  },
});
